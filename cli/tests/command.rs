//! The command as its user sees it: output, and exit status 1 for a failed check, 2 for bad usage.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

const SEAM: &str = "
/// A seam with dims left open.
#[fused_pattern(dtype = bf16)]
pub fn my_seam(x: Tokens, bias: Option<Tokens>, w: Channels, eps: Scalar) -> Tokens {
    let y = rms_norm(all_reduce(x) + bias, w, eps);
    y
}";

fn seamline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_seamline")).args(arguments).output().expect("the command runs")
}

/// Standard output of a command that must succeed.
fn succeeds(arguments: &[&str]) -> String {
    let output = seamline(arguments);
    let text = String::from_utf8(output.stdout).expect("output is UTF-8");
    assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Standard error of a command that must end with `status`.
fn fails(status: i32, arguments: &[&str]) -> String {
    let output = seamline(arguments);
    let text = String::from_utf8(output.stderr).expect("output is UTF-8");
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
    text
}

/// A source file of its own for each test.
fn file(name: &str, source: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, source).expect("the folder for tests can be written");
    path
}

#[test]
fn list_names_every_ready_made_pattern() {
    let rows: Value = serde_json::from_str(&succeeds(&["list", "--json"])).unwrap();
    let names: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), seamline::patterns::ALL.len());
    let text = succeeds(&["list"]);
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
}

/// Two patterns of one name, and one that a macro makes.
const NAMESAKES: &str = "
mod first {
    #[fused_pattern(dtype = bf16)]
    pub fn seam(x: Tokens) -> Tokens { let doubled = x + x; doubled }
}
mod second {
    #[fused_pattern(dtype = bf16)]
    pub fn seam(x: Tokens) -> Tokens { let squared = x * x; squared }
    fn helper() {
        #[fused_pattern(dtype = bf16)]
        fn inner_seam(x: Tokens) -> Tokens { let negated = -x; negated }
    }
}
made! {
    #[fused_pattern(dtype = bf16)]
    pub fn made(x: Tokens) -> Tokens { let y = -x; y }
}";

#[test]
fn patterns_of_one_name_are_told_apart_by_their_paths() {
    let file = file("namesakes.rs", NAMESAKES);
    let file = file.to_str().unwrap();
    let show = |pattern| {
        let arguments =
            ["show", file, "--pattern", pattern, "--set", "hidden=64", "-n", "1", "--arch", "none"];
        seamline(&arguments)
    };
    for (pattern, result) in [
        ("first::seam", "doubled"),
        ("second::seam", "squared"),
        ("inner_seam", "negated"),
        ("second::helper::inner_seam", "negated"),
    ] {
        let text = String::from_utf8(show(pattern).stdout).unwrap();
        assert!(text.contains(&format!("store {result}")), "{pattern}: {text}");
    }
    let all = "first::seam (line 3), second::seam (line 7)";
    for (pattern, expected) in [
        ("seam", format!("choose one by its path: {all}\n")),
        ("am", format!("there are {all}, second::helper::inner_seam (line 10)\n")),
        ("third::seam", format!("there are {all}, second::helper::inner_seam (line 10)\n")),
    ] {
        let output = show(pattern);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.ends_with(&expected), "`{expected}` is not in\n{text}");
        assert!(text.starts_with(&format!("note: {file}:15: a pattern in a macro is left out")), "{text}");
    }
}

#[test]
fn a_whole_path_is_meant_before_the_end_of_one() {
    let root = "#[fused_pattern] fn seam(x: Tokens) -> Tokens { let at_root = x - x; at_root }";
    let file = file("root.rs", &format!("{NAMESAKES}\n{root}"));
    let dims = ["--set", "hidden=64", "-n", "1", "--arch", "none"];
    let text = succeeds(&[&["show", file.to_str().unwrap(), "-p", "seam"], &dims[..]].concat());
    assert!(text.contains("store at_root"), "{text}");
}

#[test]
fn list_shows_the_patterns_of_a_source_file_by_their_paths() {
    let file = file("listed.rs", NAMESAKES);
    let file = file.to_str().unwrap();
    let text = succeeds(&["list", file]);
    for (path, line) in [("first::seam", 3), ("second::seam", 7), ("second::helper::inner_seam", 10)] {
        let heading = format!("{path}, line {line}: dtype = bf16");
        assert!(text.lines().any(|row| row == heading), "`{heading}` is not in\n{text}");
    }
    let rows: Value = serde_json::from_str(&succeeds(&["list", file, "--json"])).unwrap();
    assert_eq!((&rows[1]["path"], &rows[1]["name"]), (&"second::seam".into(), &"seam".into()));
    assert_eq!((&rows[1]["line"], &rows[1]["outputs"][0]["name"]), (&7.into(), &"squared".into()));
}

#[test]
fn list_tells_types_shapes_and_what_is_fixed() {
    let source = "
#[fused_pattern(hidden = 64, ranks = 2)]
fn seam(mut r: Tokens, s: Option<Tokens<f32>>, w: Channels, eps: Scalar) -> (Tokens, Tokens<f16>) {
    r += all_reduce(r + s);
    let y = rms_norm(r, w, eps);
    (r, y)
}";
    let file = file("types.rs", source);
    let text = succeeds(&["list", file.to_str().unwrap()]);
    let words: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for expected in [
        "seam, line 2: hidden = 64, ranks = 2",
        "in r Tokens [T, H] the pattern's",
        "in s Option<Tokens> [T, H] f32",
        "in eps Scalar one value f32",
        "out r Tokens [T, H] the pattern's in place of r",
        "out y Tokens [T, H] f16",
    ] {
        assert!(words.iter().any(|line| line == expected), "`{expected}` is not in\n{text}");
    }
    let rows: Value = serde_json::from_str(&succeeds(&["list", file.to_str().unwrap(), "--json"])).unwrap();
    let row = &rows[0];
    assert_eq!((&row["fixed"]["hidden"], &row["fixed"]["top_k"]), (&64.into(), &Value::Null));
    let s = &row["parameters"][1];
    assert_eq!((&s["type"], &s["dtype"], &s["optional"]), (&"Tokens".into(), &"f32".into(), &true.into()));
    assert_eq!(row["outputs"][0]["in_place_of"], "r");
}

#[test]
fn lists_take_commas_and_spaces_and_leave_the_file() {
    let file = file("lists.rs", &SEAM.replace("(dtype = bf16)", ""));
    let file = file.to_str().unwrap();
    let dims = ["--set", "hidden=64,dtype=f16"];
    let report = |arguments: &[&str]| -> Value {
        serde_json::from_str(&succeeds(&[&["show", "--json"], arguments].concat())).unwrap()
    };
    for arguments in [
        &["-t", "1", "8192", "--set", "hidden=64", "--arch", "none", file][..],
        &["-t", "1,8192", "--arch", "none", "--set", "hidden=64", "dtype=bf16", file],
        &["-t", "1, 8192", "--arch", "none", "--set", "hidden=64", file],
        &["-t", "1", "-t", "8192", "--arch", "none", "--set", "hidden=64,dtype=bf16", file],
        &[file, "-t1", "8192", "--arch=none", "--set=hidden=64"],
    ] {
        let report = report(arguments);
        let tokens = report["launches"].as_array().unwrap().iter().map(|launch| &launch["tokens"]);
        assert_eq!(tokens.collect::<Vec<_>>(), [&Value::from(1), &Value::from(8192)], "{arguments:?}");
    }
    let report = report(&[&dims[..], &["--arch", "none", "none", file, "--without", "bias"]].concat());
    assert_eq!((&report["hidden"], &report["dtype"]), (&64.into(), &"f16".into()));
}

#[test]
fn json_tells_errors_too() {
    let source = file("wrong_json.rs", &SEAM.replace("w, eps)", "ww, eps)"));
    let source = source.to_str().unwrap();
    for (status, arguments, expected) in [
        (1, &["show", source, "--json"][..], "`ww` is not a parameter"),
        (1, &["list", source, "--json"], "`ww` is not a parameter"),
        (2, &["check", "no_such_file.rs", "--json"], "cannot read no_such_file.rs"),
        (2, &["show", "--json", "-t", "x"], "invalid value 'x'"),
        (2, &["bench", "--json", "--hidden", "0"], "0 is not in 1..=65536"),
    ] {
        let output = seamline(arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}");
        let failure: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
        assert_eq!(failure["status"], status, "{failure}");
        let error = failure["error"].as_str().unwrap();
        assert!(error.contains(expected) && !error.starts_with("error"), "{arguments:?}: {error}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{arguments:?}");
    }
}

#[test]
fn what_the_system_says_is_told_once() {
    let file = file("once.rs", SEAM);
    let nowhere =
        ["show", file.to_str().unwrap(), "--set", "hidden=64", "--arch", "none", "--cuda", "/dev/null/x"];
    for text in [fails(1, &nowhere), fails(2, &["list", "no_such_file.rs"])] {
        assert_eq!(text.matches("os error").count(), 1, "{text}");
    }
}

#[test]
fn no_source_commands_the_terminal() {
    let file = file("escapes.rs", &SEAM.replace("w, eps)", "/* \u{1b}[2J */ ww, eps)"));
    let text = fails(1, &["show", file.to_str().unwrap(), "--set", "hidden=64"]);
    assert!(!text.contains('\u{1b}') && text.contains("\\u{1b}[2J"), "{text}");
    let text = fails(2, &["show", "\u{1b}[2J.rs"]);
    assert!(!text.contains('\u{1b}') && text.contains("cannot read"), "{text}");
}

#[test]
fn what_surrounds_a_pattern_may_be_deeper_than_the_stack() {
    let deep = |n: usize| ["(".repeat(n), "-".repeat(n), "1.0".to_owned(), ")".repeat(n)].concat();
    let around = file("deep_around.rs", &format!("{SEAM}\nconst X: f32 = {};", deep(100_000)));
    succeeds(&["show", around.to_str().unwrap(), "--set", "hidden=64", "--arch", "none"]);
    let inside = file("deep_inside.rs", &SEAM.replace("w, eps)", &format!("w, {})", deep(100_000))));
    let text = fails(1, &["show", inside.to_str().unwrap(), "--set", "hidden=64", "--arch", "none"]);
    assert!(text.contains("5:84: this is nested too deep: a pattern has at most 40 levels"), "{text}");
    assert!(text.len() < 1000, "{text}");
}

#[test]
fn show_tells_phases_launches_and_code_of_a_source_file() {
    let file = file("shown.rs", SEAM);
    let file = file.to_str().unwrap();
    let text = succeeds(&["show", file, "--set", "hidden=4096", "--ranks", "4", "--arch", "none"]);
    for expected in [
        "my_seam: hidden 4096, 4 ranks, bf16",
        "sum over ranks of",
        "until the row reduction",
        "one_shot",
        "floor",
        "struct Spec",
    ] {
        assert!(text.contains(expected), "`{expected}` is not in\n{text}");
    }
}

#[test]
fn show_has_no_code_for_an_absent_parameter() {
    let file = file("absent.rs", SEAM);
    let dims = ["--set", "hidden=64", "--arch", "none", "--json"];
    let show = |more: &[&str]| -> Value {
        let arguments = [&["show", file.to_str().unwrap()], &dims[..], more].concat();
        serde_json::from_str(&succeeds(&arguments)).unwrap()
    };
    let mentions = |report: &Value| report["phases"].to_string().contains("bias");
    let present = |report: &Value| report["parameters"][1]["present"] == true;
    let (with, without) = (show(&[]), show(&["--without", "bias"]));
    assert!(mentions(&with) && present(&with), "{with}");
    assert!(!mentions(&without) && !present(&without), "{without}");
    let phase = &with["phases"][0];
    assert_eq!(phase["until"], "the exchange", "{phase}");
    let sum = phase["instructions"].as_array().unwrap().last().unwrap();
    assert!(
        sum["value"].is_string() && sum["operation"].as_str().unwrap().contains("sum over ranks of"),
        "{phase}"
    );
    let launch = &with["launches"][0];
    assert!(launch["bytes"].as_u64() > Some(0) && launch["floor_us"].as_f64() > Some(0.0), "{launch}");
}

#[test]
fn show_writes_a_whole_source() {
    let cuda = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("whole.cu");
    let pattern = ["--pattern", "residual_rmsnorm", "--set", "hidden=64", "--ranks", "1", "--arch", "none"];
    succeeds(&[&["show", "--cuda", cuda.to_str().unwrap()], &pattern[..]].concat());
    let source = std::fs::read_to_string(cuda).unwrap();
    assert!(source.contains("seamline/prelude.cuh") && source.contains("residual_rmsnorm_local"), "{source}");
}

#[test]
fn a_dump_that_fails_is_told() {
    let file = file("dumped.rs", SEAM);
    let mut show = Command::new(env!("CARGO_BIN_EXE_seamline"));
    show.args(["show", file.to_str().unwrap(), "--set", "hidden=64", "--arch", "sm_90a"]);
    let output = show.env("SEAMLINE_DUMP_DIR", "/dev/null/none").output().expect("the command runs");
    let err = String::from_utf8_lossy(&output.stderr);
    match err.contains("NVRTC was not found")
        || String::from_utf8_lossy(&output.stdout).contains("NVRTC was not found")
    {
        true => eprintln!("SKIPPED: {err}"),
        false => {
            assert!(err.starts_with("warning: SEAMLINE_DUMP_DIR: cannot write to /dev/null/none"), "{err}")
        }
    }
}

#[test]
fn an_error_in_a_source_file_is_shown_where_it_is() {
    let file = file("wrong.rs", &SEAM.replace("w, eps)", "ww, eps)"));
    let text = fails(1, &["show", file.to_str().unwrap(), "--set", "hidden=64"]);
    assert!(text.contains("5:44: `ww` is not a parameter") && text.contains("^^"), "{text}");
}

#[test]
fn bad_usage_ends_with_2_and_says_what_to_write() {
    let file = file("usage.rs", SEAM);
    let file = file.to_str().unwrap();
    let cases: [(&[&str], &str); 23] = [
        (&["show", "no_such_file.rs"], "cannot read no_such_file.rs"),
        (&["show", "--pattern", "no_such_pattern"], "there are moe_finalize_ar_residual_rmsnorm"),
        (&["show"], "choose one with --pattern"),
        (&["show", file], "`hidden` of `my_seam` is not bound"),
        (&["show", file, "--set", "hiden=4"], "expected hidden, top_k or dtype"),
        (&["show", file, "--set", "hidden=x"], "a whole number from 1 to 65536, and got `x`"),
        (&["show", file, "--set", "hidden=99999999999"], "from 1 to 65536, and got `99999999999`"),
        (&["show", file, "--set", "hidden=0"], "from 1 to 65536, and got `0`"),
        (&["show", file, "--set", "top_k=-1"], "from 1 to 64, and got `-1`"),
        (&["show", file, "--set", "hidden=4", "--ranks", "99999999999"], "99999999999 is not in 1..=8"),
        (&["bench", "--jit", "1:1", "--hidden", "70000"], "70000 is not in 1..=65536"),
        (&["bench", "--jit", "1:1", "--top-k", "65"], "65 is not in 1..=64"),
        (&["demo", "--tokens", "0"], "0 is not in 1..=65536"),
        (&["demo", "--tokens", "18446744073709551615"], "18446744073709551615 is not in 1..=65536"),
        (&["show", file, "--set", "hidden=4", "--without", "w"], "there are bias"),
        (
            &["show", file, "--set", "hidden=4", "--schedule", "local"],
            "`local` cannot run `my_seam` with --ranks 8: its ranks exchange rows: take `one_shot`",
        ),
        (
            &["show", file, "--set", "hidden=4", "--ranks", "1", "--schedule", "owner"],
            "`owner` cannot run `my_seam` with --ranks 1: it exchanges nothing",
        ),
        (
            &["show", file, "--set", "hidden=4", "--schedule", "two_shot"],
            "possible values: local, one_shot, owner",
        ),
        (&["show", file, "--set", "hidden=4", "--ranks", "9"], "9 is not in 1..=8"),
        (&["show", file, "--set", "hidden=4", "--arch", "foo"], "possible values: sm_90, sm_90a"),
        (&["show", file, "--set", "hidden=4", "--arch", "sm_90a,sm_80"], "invalid value 'sm_80'"),
        (
            &["show", file, "--set", "hidden=4", "--set", "hidden=8"],
            "`hidden` twice, as 4 and as 8: give it once",
        ),
        (&["show", file, "--set", "hidden=4", "dtype=f16", "dtype=f16"], "`dtype` twice"),
    ];
    for (arguments, expected) in cases {
        let text = fails(2, arguments);
        assert!(text.contains(expected), "{arguments:?}: `{expected}` is not in\n{text}");
    }
}

#[test]
fn the_demo_says_what_it_could_not_run_and_leaves_nothing_behind() {
    let temporary = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("demo");
    // What an earlier run has left, if it failed.
    let _ = std::fs::remove_dir_all(&temporary);
    std::fs::create_dir_all(&temporary).expect("the folder for tests can be written");
    let output = Command::new(env!("CARGO_BIN_EXE_seamline"))
        .args(["demo", "--hidden", "72", "--ranks", "2", "--tokens", "3", "--json"])
        .env("SEAMLINE_NVRTC_PATH", env!("CARGO_TARGET_TMPDIR"))
        .env("TMPDIR", &temporary)
        .env("CXX", "no-such-compiler")
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let results: Vec<&str> =
        rows.as_array().unwrap().iter().map(|row| row["result"].as_str().unwrap()).collect();
    assert_eq!(results.len(), 5);
    assert!(results.iter().all(|result| *result == "NOT RUN"), "{results:?}");
    // A folder that all users share is no place for a file of a known name.
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn the_demo_runs_the_generated_source_with_the_references_bits() {
    let output = seamline(&["demo", "--hidden", "72", "--ranks", "2", "--tokens", "3", "--json"]);
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = rows.as_array().unwrap().last().unwrap();
    assert_eq!(run["result"], "bits equal on 2 of 2 ranks", "{run}");
    for error in run["errors"].as_array().unwrap() {
        assert!(error.as_f64().unwrap() < 1e-2, "{run}");
    }
}

#[test]
fn bench_jit_times_a_fresh_process_or_says_why_it_cannot() {
    let arguments =
        ["bench", "--jit", "--hidden", "512", "--top-k", "2", "--rounds", "1", "--json", "1:1,4096", "2:1"];
    let output = seamline(&arguments);
    if output.status.success() {
        let costs: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let costs = costs.as_array().expect("a list");
        assert_eq!(costs.len(), 3, "{costs:?}");
        // Each point's own kernel: one token is dealt to as many threads as there are lanes, 4096 are not.
        for (cost, (ranks, tokens, kernel)) in
            costs.iter().zip([(1, 1, "local_2x32_"), (1, 4096, "local_1x64_"), (2, 1, "one_shot_2x32")])
        {
            assert_eq!((&cost["ranks"], &cost["tokens"]), (&ranks.into(), &tokens.into()));
            assert!(cost["kernel"].as_str().expect("a name").contains(kernel), "{cost}");
            let [process, compilation] = ["process", "compilation"].map(|what| cost[what][0].as_f64());
            assert!(process > compilation && compilation > Some(1.0), "{cost}");
        }
    } else {
        let text = String::from_utf8(output.stderr).expect("output is UTF-8");
        assert!(
            text.contains("the kernel of a group of 1 for 1 tokens was not compiled: NVRTC was not found"),
            "{text}"
        );
    }
    let text = fails(2, &["bench", "--jit", "--host"]);
    assert!(text.contains("cannot be used with"), "{text}");
}

#[test]
fn show_cuts_what_the_exchange_memory_does_not_hold() {
    let arguments =
        ["show", "--pattern", "ar_residual_rmsnorm", "--set", "hidden=4096", "dtype=bf16", "--arch", "none"];
    let report = |ranks: &str| -> Value {
        let more = ["--ranks", ranks, "--tokens", "100,300", "--json"];
        serde_json::from_str(&succeeds(&[&arguments[..], &more[..]].concat())).expect("JSON")
    };
    let cut = |report: &Value, at: usize| {
        let launch = &report["launches"][at];
        (launch["launches"].as_u64(), launch["tokens_per_launch"].as_u64())
    };
    let eight = report("8");
    assert_eq!((cut(&eight, 0), cut(&eight, 1)), ((Some(1), Some(100)), (Some(3), Some(128))));
    // Alone nothing is exchanged.
    assert_eq!(cut(&report("1"), 1), (Some(1), Some(300)));
}
