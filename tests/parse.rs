//! The command reads source files without building them: it must see what the compiler sees.

use seamline::patterns;
use seamline_codegen::parse::parse_file;

#[test]
fn the_ready_made_patterns_parse_to_their_constants() {
    let parsed =
        parse_file(include_str!("../src/patterns.rs")).unwrap_or_else(|e| panic!("src/patterns.rs:{e}"));
    let constants = patterns::ALL.iter().map(|listed| listed.graph);
    assert_eq!(parsed.iter().collect::<Vec<_>>(), constants.collect::<Vec<_>>());
}

#[test]
fn a_file_that_is_not_rust_says_where() {
    let error = parse_file("fn a() {\n    let x = ;\n}\n").expect_err("`let x = ;` is not Rust");
    assert_eq!(error.to_string(), "2:13: expected an expression\n2 |     let x = ;\n  |             ^");
}
