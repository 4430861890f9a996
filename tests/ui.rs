//! Every message at compile time, as the compiler shows it.

use seamline_codegen::check::ProblemKind;
use seamline_codegen::parse::{Diagnostic, parse_file};
use std::path::Path;

#[test]
fn messages_are_as_reviewed() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

/// `OperandShape` has `tests/ui/operand_shape.rs`, which gives that message and no other.
#[test]
fn every_message_has_a_ui_test() {
    let names = Diagnostic::NAMES.iter().chain(ProblemKind::NAMES).filter(|name| **name != "Problem");
    for name in names {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/ui/{}.rs", snake_case(name)));
        let source = std::fs::read_to_string(&path)
            .unwrap_or_else(|e| panic!("`{name}` has no UI test: write {}: {e}", path.display()));
        let errors = match parse_file(&source) {
            Ok(_) => panic!("{} gives no error", path.display()),
            Err(errors) => errors.0,
        };
        for error in &errors {
            let got = match &error.diagnostic {
                Diagnostic::Problem { kind } => kind.name(),
                other => other.name(),
            };
            assert_eq!(&got, name, "{}\n{error}", path.display());
        }
        assert!(
            path.with_extension("stderr").exists(),
            "{} has no .stderr: run with TRYBUILD=overwrite",
            path.display()
        );
    }
}

/// `NotAFn` to `not_a_fn`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.replace("DType", "Dtype").chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}
