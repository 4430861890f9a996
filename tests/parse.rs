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
fn a_pattern_that_is_not_rust_says_where_and_the_rest_of_a_file_is_the_compilers() {
    let elsewhere = "fn a() {\n    let x = ;\n}\n";
    assert_eq!(parse_file(elsewhere), Ok(Vec::new()));
    let pattern =
        format!("{elsewhere}#[fused_pattern]\nfn b(x: Tokens) -> Tokens {{\n    let y = ;\n    y\n}}\n");
    let error = parse_file(&pattern).expect_err("`let y = ;` is not Rust");
    assert_eq!(error.to_string(), "6:13: expected an expression\n6 |     let y = ;\n  |             ^");
}
