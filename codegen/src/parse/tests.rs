use super::*;
use crate::check::{ProblemKind, check};
use crate::{DType, Op, ValueId};

fn parsed(attr: &str, item: &str) -> Parsed {
    let tokens = |text: &str| text.parse::<TokenStream>().expect("test source has balanced tokens");
    parse(tokens(attr), tokens(item)).expect("test source is a fn")
}

fn graph(item: &str) -> Graph {
    let parsed = parsed("", item);
    let messages = parsed.diagnostics.iter().map(|d| d.diagnostic.to_string()).collect::<Vec<_>>();
    assert!(messages.is_empty(), "{messages:#?}");
    parsed.graph
}

fn names(parsed: &Parsed) -> Vec<&'static str> {
    let name = |d: &Diagnostic| match d {
        Diagnostic::Problem { kind } => kind.name(),
        other => other.name(),
    };
    parsed.diagnostics.iter().map(|d| name(&d.diagnostic)).collect()
}

#[test]
fn nodes_are_in_source_order_and_a_parameter_is_read_once() {
    let graph = graph("fn p(a: Tokens, b: Tokens) -> Tokens { let c = a + b; let d = c * a; d }");
    let ops = graph.nodes.iter().map(|n| n.op).collect::<Vec<_>>();
    let id = ValueId;
    let a = Op::Param(ParamId(0));
    let b = Op::Param(ParamId(1));
    assert_eq!(ops, [a, b, Op::Add(id(0), id(1)), Op::Mul(id(2), id(0))]);
    assert_eq!(graph.nodes[2].name.as_deref(), Some("c"));
    assert_eq!(graph.outputs[0].value, id(3));
}

#[test]
fn an_alias_makes_no_node_and_renames_nothing() {
    let graph = graph("fn p(a: Tokens) -> Tokens { let b = a; let c = -b; let d = c; d }");
    assert_eq!(graph.nodes.len(), 2);
    assert_eq!(graph.nodes[1].name.as_deref(), Some("c"));
    assert_eq!(graph.outputs[0].name, "d");
}

#[test]
fn an_assigned_and_returned_parameter_is_in_place() {
    let graph = graph("fn p(mut r: Tokens, x: Tokens) -> Tokens { r += x; r }");
    assert_eq!(graph.params[0].in_place, Some(OutputId(0)));
    assert_eq!(graph.outputs[0].in_place, Some(ParamId(0)));
}

#[test]
fn what_is_updated_in_place_is_read_before_anything_is_written() {
    // The new value of `a` is computed first, and the old one is asked for last, under another name.
    let graph = graph(
        "fn p(x: Tokens, mut a: Tokens) -> (Tokens, Tokens) { let old = a; let s = x + x; a = s; let z = old * x; (a, z) }",
    );
    assert_eq!(graph.nodes[0].op, Op::Param(ParamId(1)));
    assert_eq!(graph.nodes.iter().filter(|n| n.op == Op::Param(ParamId(1))).count(), 1);
}

#[test]
fn a_shadowed_parameter_is_not_in_place() {
    let parsed = parsed("", "fn p(r: Tokens, x: Tokens) -> Tokens { let mut r = r + x; r += x; r }");
    assert_eq!(names(&parsed), ["NameTaken"]);
    assert_eq!(parsed.graph.outputs[0].in_place, None);
}

#[test]
fn literals_are_rounded_once_from_decimal() {
    // Just above the midpoint of two f32, by less than f64 resolves.
    let text = "1.00000005960464477539062500000001";
    let graph = graph(&format!("fn p(a: Tokens) -> Tokens {{ let b = a * {text}; b }}"));
    assert_eq!(graph.nodes[1].op, Op::Literal(0x3F80_0001));
}

#[test]
fn a_body_with_an_error_leaves_the_signature_and_the_outputs_whole() {
    let parsed = parsed(
        "hidden = 64",
        "fn p(a: Tokens, w: Channels<f32>) -> (Tokens, Tokens<f32>) { let b = a / 2.0; let c = a + w; (b, c) }",
    );
    assert_eq!(names(&parsed), ["Division"]);
    assert_eq!(parsed.signature.params.len(), 2);
    let outputs =
        parsed.outputs.iter().map(|o| (o.ident.to_string(), o.role.tensor().elem)).collect::<Vec<_>>();
    assert_eq!(outputs, [("b".to_owned(), Elem::Pattern), ("c".to_owned(), Elem::Fixed(DType::F32))]);
}

#[test]
fn a_body_that_is_not_rust_yet_still_names_its_outputs() {
    let parsed = parsed("", "fn p(a: Tokens) -> (Tokens, Tokens) { let b = a + ; (b, c) }");
    assert_eq!(names(&parsed), ["Syntax"]);
    assert_eq!(parsed.outputs.len(), 2);
}

#[test]
fn a_fn_that_is_not_finished_says_what_is_missing() {
    let tokens = |text: &str| text.parse::<TokenStream>().expect("test source has balanced tokens");
    let name = |item| parse(tokens(""), tokens(item)).map_err(|r| r.diagnostic.name()).err();
    assert_eq!(name("pub fn p(x: ) -> Tokens { x }"), Some("Syntax"));
    assert_eq!(name("pub struct P;"), Some("NotAFn"));
    assert_eq!(name("type F = fn(Tokens) -> Tokens;"), Some("NotAFn"));
    assert_eq!(name("fn 1st(x: Tokens) -> Tokens { x }"), Some("Syntax"));
    assert_eq!(name("fn p(x: Tokens) -> Tokens;"), Some("NotAFn"));
}

#[test]
fn every_error_is_reported_and_none_twice() {
    let parsed = parsed(
        "hiden = 64, top_k = 0",
        "fn p(a: Tokns, b: Tokens) -> Tokens { let c = a + nope; let d = soft(b) + c; d }",
    );
    assert_eq!(
        names(&parsed),
        ["UnknownOption", "UnknownType", "Undefined", "UnknownOperation", "DimOutOfRange"]
    );
}

#[test]
fn one_mistake_gives_one_message() {
    let message = |item: &str| names(&parsed("", item)).join(", ");
    for (expected, item) in [
        (
            "Generics",
            "fn p<T>(x: Tokens<T>, y: T, z: Option<T>) -> (Tokens<T>, T) { let a = x * y + z; let b = a * x; (b, a) }",
        ),
        ("Generics", "fn p<const H: usize>(x: Tokens<H>) -> Tokens<H> { let y = -x; y }"),
        ("ParameterPattern", "fn p((a, b): (Tokens, Tokens)) -> Tokens { let y = a + b; y }"),
        ("ParameterPattern", "fn p(Pair { a, b }: Pair) -> Tokens { let y = rms_norm(a, b, 1e-6); y }"),
        ("NoReturnType", "fn p() {}"),
        ("ReturnType", "fn p(x: Tokens) -> Result<Tokens, Error> { let y = -x; y }"),
        ("ReturnType", "fn p(x: Tokens) -> &Tokens { let y = -x; y }"),
        ("NoResult", "fn p(x: Tokens) -> Tokens { let y = -x; y; }"),
        ("NoResult", "fn p(x: Tokens) -> (Tokens, Tokens) { let y = -x; let z = y * x; (y, z); }"),
        ("LetValue", "fn p(x: Tokens) -> Tokens { let y: Tokens; y = -x; y }"),
        ("LetPattern", "fn p(x: Tokens) -> Tokens { let (a, b) = (x, -x); let y = a + b; y }"),
        ("AssignImmutable", "fn p(x: Tokens, y: Tokens) -> Tokens { x += y; x += y; x }"),
        ("Undefined", "fn p(x: Tokens) -> Tokens { z = -x; z = z + x; z }"),
        ("InnerAttribute", "fn p(x: Tokens) -> Tokens { let y = -x; #[cfg(any())] y }"),
        (
            "Item",
            "fn p(x: Tokens) -> Tokens { #[inline] fn half(x: Tokens) -> Tokens<f32> { x * 0.5 } let y = half(x); y }",
        ),
        ("Item", "fn p(x: Tokens) -> Tokens { let y = x * HALF; const HALF: f32 = 0.5; y }"),
        (
            "Item",
            "fn p(x: Tokens) -> Tokens { use seamline::dsl::{self, all_reduce as sum}; let y = sum(x); y }",
        ),
        (
            "Item",
            "fn p(x: Tokens) -> Tokens { macro_rules! half { ($x:expr) => { 0.5 * $x } } let y = half!(x); y }",
        ),
    ] {
        assert_eq!(message(item), expected, "{item}");
    }
}

#[test]
fn a_raw_name_is_the_same_name() {
    let raw = "fn p(mut r#x: r#Tokens<r#f32>, z: r#Option<Tokens>) -> r#Tokens<f32> { let y = x + r#z; r#x = r#all_reduce(r#y); x }";
    let plain =
        "fn p(mut x: Tokens<f32>, z: Option<Tokens>) -> Tokens<f32> { let y = x + z; x = all_reduce(y); x }";
    assert_eq!(graph(raw), graph(plain));
    let [raw, plain] = ["r#dtype = r#bf16", "dtype = bf16"].map(|attr| parsed(attr, plain));
    assert_eq!((names(&raw), raw.graph), (vec![], plain.graph));
}

#[test]
fn an_empty_statement_is_nothing() {
    let [with, without] = [";", ""]
        .map(|empty| format!("fn p(x: Tokens) -> Tokens {{ {empty} let y = -x; {empty} {empty} y }}"));
    assert_eq!(graph(&with), graph(&without));
}

#[test]
fn an_operation_is_known_by_the_last_segment_of_a_plain_path() {
    let called = |path: &str| {
        let item = format!("fn p(x: Tokens) -> Tokens {{ let y = {path}(x); y }}");
        names(&parsed("", &item))
    };
    for path in ["all_reduce", "dsl::all_reduce", "::renamed::prelude::all_reduce", "crate::ops::all_reduce"]
    {
        assert!(called(path).is_empty(), "{path}");
    }
    assert_eq!(called("all_reduce::other"), ["UnknownOperation"]);
    assert_eq!(called("<Mine>::all_reduce"), ["Unsupported"]);
    assert_eq!(called("Mine::<u8>::all_reduce"), ["CallTypeArguments"]);
}

#[test]
fn a_file_gives_its_patterns_in_order_also_from_modules() {
    let source = "
        #[fused_pattern] fn a(x: Tokens) -> Tokens { let y = -x; y }
        fn other() {}
        mod m { #[seamline::fused_pattern(hidden = 8)] pub fn b(x: Tokens) -> Tokens { let y = x * x; y } }
    ";
    let graphs = parse_file(source).expect("the file is fine");
    assert_eq!(graphs.iter().map(|g| &*g.name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(graphs[1].fixed.hidden, Some(8));
}

#[test]
fn a_pattern_is_found_wherever_an_item_may_stand_and_told_by_its_path() {
    let source = "#!/usr/bin/env script
        #![allow(dead_code)]
        #[fused_pattern] fn p(x: Tokens) -> Tokens { let y = -x; y }
        pub(crate) mod a { pub mod r#mod { #[doc = \"b\"] #[fused_pattern] #[allow(unused)] fn p(x: Tokens) -> Tokens { let y = -x; y } } }
        const fn helper<T: Clone>(_: fn(u8) -> T) -> impl Fn() where T: Copy {
            if !true { let x = || -> u8 { #[fused_pattern] fn q(x: Tokens) -> Tokens { let y = -x; y } 1 }; }
            let f: fn() -> X = { #[fused_pattern] fn t(x: Tokens) -> Tokens { let y = -x; y } || X };
            || ()
        }
        impl Helper { fn method(&self) { #[cfg_attr(all(), allow(unused), seamline::fused_pattern(hidden = 8))]
            fn r(x: Tokens) -> Tokens { let y = -x; y } }
            const C: u8 = { #[fused_pattern] fn s(x: Tokens) -> Tokens { let y = -x; y } 1 }; }
    ";
    let file = SourceFile::parse(source).unwrap_or_else(|e| panic!("{e}"));
    let found = file.patterns.iter().map(|f| (f.path.as_str(), f.line)).collect::<Vec<_>>();
    assert_eq!(
        found,
        [("p", 3), ("a::mod::p", 4), ("helper::q", 6), ("helper::t", 7), ("method::r", 10), ("s", 12)]
    );
    assert_eq!(file.patterns[4].graph.fixed.hidden, Some(8));
    assert!(file.in_macros.is_empty());
}

#[test]
fn what_is_in_a_macro_is_told_apart() {
    let source = "
        macro_rules! seam { ($name:ident) => {
            #[fused_pattern] fn $name(x: Tokens) -> Tokens { let y = -x; y }
        } }
        fn f() { quote!(#[seamline::fused_pattern(hidden = 8)] fn p() {}); }
        #[fused_pattern] fn p(x: Tokens) -> Tokens { let y = -x; y }
    ";
    let file = SourceFile::parse(source).expect("what is in a macro is not looked at");
    assert_eq!((file.in_macros, file.patterns.len()), (vec![3, 5], 1));
}

#[test]
fn an_associated_fn_is_no_pattern() {
    for block in ["impl<T> Wrap<T> for P", "pub unsafe trait Seams"] {
        let source =
            format!("{block} {{\n #[fused_pattern]\n fn p(x: Tokens) -> Tokens {{ let y = -x; y }} }}");
        let FileError(errors) = SourceFile::parse(&source).expect_err("it would be a type");
        assert_eq!((errors[0].line, &errors[0].diagnostic), (2, &Diagnostic::InImpl {}));
    }
}

#[test]
fn what_is_around_patterns_may_be_as_deep_as_it_likes() {
    let deep = |n: usize| [&"(".repeat(n), "-".repeat(n).as_str(), "1", &")".repeat(n)].concat();
    let blocks = |n: usize, inner: &str| ["fn f() ", &"{".repeat(n), inner, &"}".repeat(n)].concat();
    let pattern = "#[fused_pattern] fn p(x: Tokens) -> Tokens { let y = -x; y }";
    let attributes = ["#[", &"cfg_attr(x, ".repeat(50_000), &")".repeat(50_000), "]"].concat();
    let source = format!("{attributes} const X: i32 = {};\n{}", deep(200_000), blocks(200_000, pattern));
    assert_eq!(parse_file(&source).map(|graphs| graphs.len()), Ok(1));
    let error = parse_file(&pattern.replace("-x", &deep(200_000))).expect_err("it is too deep").to_string();
    assert!(error.starts_with("1:92: this is nested too deep") && error.len() < 1000, "{error}");
}

#[test]
fn brackets_that_do_not_match_are_shown() {
    for (source, at) in
        [("fn a() {\n    f(1;\n}\n", "3:1: "), ("fn a() {\n\n", "1:8: "), ("fn a() }", "1:8: ")]
    {
        let error = parse_file(source).expect_err("brackets do not match").to_string();
        assert!(error.starts_with(at) && error.contains("without its other half"), "{error}");
    }
}

#[test]
fn a_file_with_errors_says_where_each_is() {
    let source = "#[fused_pattern]\nfn a(x: Tokens, y: Tokens) -> Tokens {\n    let z = x % y;\n    z\n}\n";
    let FileError(errors) = parse_file(source).expect_err("`%` is not supported");
    let at = |e: &Located| (e.line, e.column, e.width);
    assert_eq!(errors.iter().map(at).collect::<Vec<_>>(), [(3, 13, 5)]);
    let shown = errors[0].to_string();
    assert!(shown.ends_with("3 |     let z = x % y;\n  |             ^^^^^"), "{shown}");
}

#[test]
fn no_source_makes_the_parser_panic() {
    let source = "#[fused_pattern(hidden = 64, top_k = 8, dtype = bf16, wire = f32)] pub fn seam(rows: Permuted, map: RowMap,
        weights: Option<ExpertWeights<f32>>, shared: Option<Tokens>, mut residual: Tokens, w: Channels, eps: Scalar)
        -> (Tokens, Tokens<f32>) { let mut local = finalize(rows, map, weights); local += shared; local += -1.5;
        residual = all_reduce(local) + residual; let norm_out = rms_norm(-residual, 1.0 + w, eps * 2.0);
        (residual, norm_out) }";
    let ends_word = |c: char| !(c.is_alphanumeric() || c == '_');
    let words = source.split_inclusive(ends_word).flat_map(|w| {
        let (word, end) = w.split_at(w.trim_end_matches(ends_word).len());
        [word, end]
    });
    let words = words.filter(|w| !w.is_empty()).collect::<Vec<_>>();
    assert_eq!(parse_file(source).map(|graphs| graphs.len()), Ok(1));
    let mut refused = 0;
    for i in 0..words.len() {
        for instead in [
            "", "x", "residual", "map", "shared", "=", ";", "(", "1e99", "Tokens", "&", "#", "mut", "self",
            "__",
        ] {
            let changed = [&words[..i], &[" ", instead, " "], &words[i + 1..]].concat().concat();
            // Whatever it is, it is a graph that passes every check, or errors that can be shown.
            match parse_file(&changed) {
                Ok(graphs) => assert!(graphs.iter().all(|g| check(g).is_ok()), "{changed}"),
                Err(errors) => refused += usize::from(!errors.to_string().is_empty()),
            }
        }
    }
    assert!(refused > 1000, "only {refused} were refused");
}

#[test]
fn a_problem_points_at_the_operand() {
    let source = "#[fused_pattern]\nfn a(x: Tokens, w: Channels, eps: PerToken) -> Tokens {\n    let z = rms_norm(x, w, eps);\n    z\n}\n";
    let FileError(errors) = parse_file(source).expect_err("eps is not one value");
    assert_eq!(errors.iter().map(|e| (e.line, e.column)).collect::<Vec<_>>(), [(3, 28)]);
    let kind =
        |e: &Located| matches!(&e.diagnostic, Diagnostic::Problem { kind: ProblemKind::OperandShape { .. } });
    assert!(kind(&errors[0]));
}
