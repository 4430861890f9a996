//! `seamline check` as its user sees it.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

const SEAMS: &str = "
#[fused_pattern(dtype = bf16)]
pub fn summed(x: Tokens, bias: Option<Tokens>, w: Channels, eps: Scalar) -> Tokens {
    let y = rms_norm(all_reduce(x) + bias, w, eps);
    y
}

mod alone {
    #[fused_pattern(dtype = f32)]
    pub fn finalized(rows: Permuted, map: RowMap, weights: ExpertWeights<f32>, mut r: Tokens) -> Tokens {
        r += finalize(rows, map, weights);
        r
    }
}";

/// A command that has the source file, of its own for each test, after `check`.
fn check(name: &str, arguments: &[&str]) -> Command {
    check_source(name, SEAMS, arguments)
}

fn check_source(name: &str, source: &str, arguments: &[&str]) -> Command {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, source).expect("the folder for tests can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_seamline"));
    command.arg("check").arg(file).args(arguments);
    command
}

fn run(mut command: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the command runs");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn a_schedule_is_checked_where_it_can_run() {
    let sizes =
        ["--set", "hidden=600", "top_k=3", "--tokens", "3", "--executor", "sim", "--schedule", "owner"];
    let (status, out, err) = run(check("owner.rs", &[&sizes[..], &["--ranks", "1,2,3"]].concat()));
    assert_eq!(status, Some(0), "{out}{err}");
    // Of one pattern, in two variants, for two of the numbers of ranks.
    let cases = 2 * 2 * 8;
    assert!(out.contains(&format!("{cases} of {cases} cases equal")), "{out}");
    assert!(!out.contains("N=1") && !out.contains("finalized"), "{out}");
    let (status, _, err) = run(check("owner.rs", &[&sizes[..], &["--ranks", "1"]].concat()));
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("`owner` can run none of these patterns"), "{err}");
}

#[test]
fn every_pattern_variant_group_and_kind_is_a_line_and_equal() {
    let arguments =
        ["--set", "hidden=40", "top_k=3", "--ranks", "1,2", "--tokens", "1,3", "--executor", "sim", "-v"];
    let (status, out, err) = run(check("lines.rs", &arguments));
    assert_eq!(status, Some(0), "{out}{err}");
    // Of 12 kinds, four are about the row map, which the first pattern lacks; the second one has no ranks.
    let cases = 2 * 2 * 2 * 8 + 2 * 12;
    assert_eq!(out.lines().filter(|line| line.starts_with("equal ")).count(), cases, "{out}");
    assert!(out.contains(&format!("{cases} of {cases} cases equal")), "{out}");
    for expected in [
        "summed: every optional input, N=1, T=1, ordinary, sim",
        "summed: no `bias`, N=2, T=3, inf and nan, sim  (error: y not finite)",
        "alone::finalized: N=1, T=3, indices out of range, sim  (error: r ",
        "large by design for negative zeros",
    ] {
        assert!(out.contains(expected), "`{expected}` is not in\n{out}");
    }
    assert_eq!(err, "", "progress is for terminals");
}

#[test]
fn a_pattern_on_an_executor_is_a_line() {
    let arguments = ["--set", "hidden=40", "top_k=3", "-n", "1,2", "-t", "1,3", "--executor", "sim"];
    let (status, out, err) = run(check("summary.rs", &arguments));
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert!(
        lines[0].starts_with(
            "equal      summed on sim: 64 of 64 cases, N=1,2, T=1,3, 8 kinds of inputs; largest error: y "
        ),
        "{out}"
    );
    assert!(
        lines[1].starts_with("equal      alone::finalized on sim: 24 of 24 cases, N=1, T=1,3, 12 kinds"),
        "{out}"
    );
    assert_eq!(lines[2..], ["", "88 of 88 cases equal to the reference, bit for bit, on every rank"]);
}

#[test]
fn inputs_are_chosen_and_large_cases_have_few() {
    let few = ["-p", "summed", "--set", "hidden=40", "-n", "1", "-t", "2", "--executor", "sim", "--inputs"];
    let (status, out, err) =
        run(check("inputs.rs", &[&few[..], &["ordinary", "inf-and-nan,overflow"]].concat()));
    assert!(status == Some(0) && out.contains("6 of 6 cases, N=1, T=2, 3 kinds of inputs"), "{out}{err}");
    let (status, _, err) = run(check("inputs.rs", &[&few[..], &["odd"]].concat()));
    assert!(status == Some(2) && err.contains("possible values: ordinary, engine"), "{err}");

    let large = ["-p", "summed", "--set", "hidden=65536", "-n", "1", "-t", "1,300", "--executor", "sim"];
    // Which cases there are shows without running them.
    let mut command = check("large.rs", &large);
    command.env("CXX", "no-such-compiler");
    let (status, out, err) = run(command);
    // Two variants; eight kinds of one token, three of many.
    assert!(status == Some(1) && out.contains("0 of 22 cases"), "{out}{err}");
    assert!(err.contains("note: `summed` with T=300 has 3 kinds of inputs, not all"), "{err}");
}

#[test]
fn a_reader_that_has_gone_ends_the_check() {
    let arguments = ["--set", "hidden=40", "top_k=3", "-n", "1", "-t", "1", "--executor", "sim", "-v"];
    let mut check = check("gone.rs", &arguments);
    let mut check = check.stdout(std::process::Stdio::piped()).spawn().expect("the command runs");
    drop(check.stdout.take());
    assert_eq!(check.wait().unwrap().code(), Some(1), "not all was looked at");
}

#[test]
fn what_cannot_be_run_says_why_once_for_a_pattern() {
    let mut command =
        check("once.rs", &["--set", "hidden=8", "top_k=1", "-n", "1", "-t", "1", "--executor", "sim"]);
    command.env("CXX", "no-such-compiler");
    let (status, out, _) = run(command);
    assert!(status == Some(1) && out.matches("no C++ compiler").count() == 2, "{out}");
}

#[test]
fn a_dim_that_one_of_several_patterns_fixes_is_set_for_the_others() {
    let source =
        format!("#[fused_pattern(hidden = 24)] fn fixed(x: Tokens) -> Tokens {{ let y = -x; y }}\n{SEAMS}");
    let arguments = ["--set", "hidden=40", "top_k=3", "-n", "1", "-t", "1", "--executor", "sim"];
    let (status, out, err) = run(check_source("one_fixes.rs", &source, &arguments));
    assert_eq!(status, Some(0), "{out}{err}");
    for pattern in ["fixed", "summed", "alone::finalized"] {
        assert!(out.contains(&format!("equal      {pattern} on sim: ")), "`{pattern}` is not in\n{out}");
    }
    let alone = [&arguments[..], &["--pattern", "fixed"]].concat();
    let (status, _, err) = run(check_source("one_fixes_alone.rs", &source, &alone));
    assert_eq!(status, Some(2));
    assert!(
        err.contains("`hidden` of `fixed` is fixed to 24 by its attribute, and `prepare` got 40"),
        "{err}"
    );
}

#[test]
fn json_tells_every_case_with_its_error_against_f64() {
    let arguments =
        ["--pattern", "summed", "--set", "hidden=8", "-n", "2", "-t", "2", "--executor", "sim", "--json"];
    let (status, out, err) = run(check("json.rs", &arguments));
    assert_eq!(status, Some(0), "{out}{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    let cases = report["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2 * 8);
    assert!(cases.iter().all(|case| case["equal"] == true && case["difference"].is_null()), "{out}");
    assert_eq!((&cases[0]["pattern"], &cases[0]["ranks"]), (&"summed".into(), &2.into()));
    let error = &cases[0]["errors"][0];
    assert!(error["output"] == "y" && error["error"].as_f64().unwrap() < 1e-2, "{error}");
    let not_finite = cases.iter().find(|case| case["inputs"] == "inf and nan").unwrap();
    assert!(not_finite["errors"][0]["error"].is_null(), "{not_finite}");
}

#[test]
fn an_executor_that_was_asked_for_and_is_not_there_fails() {
    let arguments = ["--set", "hidden=8", "top_k=1", "-n", "1", "-t", "1", "--executor"];
    for (executor, reason) in [("sim", "no C++ compiler"), ("cuda", "CUDA")] {
        let mut command = check(executor, &[&arguments[..], &[executor]].concat());
        command.env("CXX", "no-such-compiler").env("CUDA_VISIBLE_DEVICES", "");
        let (status, out, _) = run(command);
        assert_eq!(status, Some(1), "{out}");
        assert!(out.contains("0 of 28 cases equal") && out.contains("28 not run"), "{out}");
        assert!(out.starts_with("NOT RUN ") && out.contains(reason), "{out}");
    }
}

#[test]
fn a_machine_that_runs_no_kernel_fails() {
    let mut command = check("nothing.rs", &["--set", "hidden=8", "top_k=1"]);
    command.env("CXX", "no-such-compiler").env("CUDA_VISIBLE_DEVICES", "");
    let (status, out, _) = run(command);
    assert_eq!(status, Some(1), "{out}");
    for expected in ["NOT RUN: nothing here runs kernels", "not on sim: no C++ compiler", "not on cuda: "] {
        assert!(out.contains(expected), "`{expected}` is not in\n{out}");
    }
}

#[test]
fn bad_usage_ends_with_2_before_anything_runs() {
    let cases: [(&[&str], &str); 8] = [
        (&[], "`hidden` of `summed` is not bound"),
        (&["--set", "hidden=8"], "`top_k` of `finalized` is not bound"),
        (&["--set", "hidden=8", "top_k=1", "--ranks", "9"], "9 is not in 1..=8"),
        (&["--set", "hidden=8", "top_k=1", "--ranks", "0"], "0 is not in 1..=8"),
        (&["--set", "hidden=8", "top_k=1", "--tokens", "999999999999"], "999999999999 is not in 0..=65536"),
        (
            &["--pattern", "sumed", "--set", "hidden=8"],
            "there are summed (line 2), alone::finalized (line 9)",
        ),
        (&["--set", "hidden=8", "hidden=8", "top_k=1"], "`hidden` twice"),
        (&["--executor", "gpu"], "possible values: sim, cuda"),
    ];
    for (arguments, expected) in cases {
        let (status, out, err) = run(check("usage.rs", arguments));
        assert_eq!(status, Some(2), "{arguments:?}: {out}{err}");
        assert!(
            out.is_empty() && err.contains(expected),
            "{arguments:?}: `{expected}` is not in\n{out}{err}"
        );
    }
}

#[test]
fn an_empty_order_is_none_and_a_wrong_one_is_named() {
    let arguments =
        ["-p", "alone::finalized", "--set", "hidden=8", "top_k=1", "-t", "1", "--executor", "sim"];
    let ordered = |order: &std::ffi::OsStr| {
        let mut command = check("order.rs", &arguments);
        command.env("SEAMLINE_SIM_ORDER", order);
        run(command)
    };
    let (status, out, _) = ordered("".as_ref());
    assert_eq!(status, Some(0), "{out}");
    let mut wrong = vec![std::ffi::OsString::from("first")];
    #[cfg(unix)]
    wrong.push(std::os::unix::ffi::OsStringExt::from_vec(vec![0xff]));
    for order in wrong {
        let (status, out, _) = ordered(&order);
        let expected =
            format!("SEAMLINE_SIM_ORDER: the order is `{}`, and must be `forward`", order.to_string_lossy());
        assert!(status == Some(1) && out.contains(&expected), "{out}");
    }
}
