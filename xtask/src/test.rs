//! `cargo xtask test`: everything that can be checked on this machine.

use crate::cargo::cargo;
use crate::nvrtc;
use crate::report::{self, Counts};
use crate::suites::{Suite, Suites};
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Steps that either hold or do not. The tests build everything; these only look at it.
const CHECKS: [(&str, &[&str]); 4] = [
    ("format", &["fmt", "--all", "--", "--check"]),
    ("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    ("lints without CUDA", &["clippy", "-p", "seamline", "--no-default-features", "--", "-D", "warnings"]),
    ("docs", &["doc", "--workspace", "--no-deps"]),
];

/// Runs all steps, whatever fails. The exit code says whether something did.
pub fn run() -> Result<ExitCode> {
    let start = Instant::now();
    let mut all = Counts::default();
    for (name, arguments) in CHECKS {
        all += check(name, cargo(arguments).env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    let mut tests =
        cargo(&["test", "--workspace", "--no-fail-fast", "--color", "never", "--", "--show-output"]);
    match nvrtc::provide() {
        Ok(found) => {
            println!("NVRTC from {}: {}", found.origin, found.folder.display());
            tests.env(nvrtc::VARIABLE, &found.folder);
        }
        // The tests that need it then say themselves that they are skipped.
        Err(error) => {
            println!("no NVRTC: {error:#}");
            report::line("NVRTC", Counts::SKIPPED, Duration::ZERO);
            all += Counts::SKIPPED;
        }
    }
    all += run_tests(&mut tests)?;
    println!("{:.0} s in all", start.elapsed().as_secs_f64());
    println!("{all}");
    Ok(if all.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check(name: &str, command: &mut Command) -> Result<Counts> {
    let start = Instant::now();
    let output = command.output().with_context(|| format!("cannot run `{command:?}`"))?;
    let counts = if output.status.success() { Counts::PASSED } else { Counts::FAILED };
    report::line(name, counts, start.elapsed());
    if counts.failed > 0 {
        print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
    Ok(counts)
}

/// One build, one line per suite as it ends.
fn run_tests(command: &mut Command) -> Result<Counts> {
    // One pipe for both streams keeps the names of the suites, which are cargo's, in order with their results.
    let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    let start = Instant::now();
    let mut child = command
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("cannot run `{command:?}`"))?;
    // The command keeps its ends of the pipe open, and with them the loop below.
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());

    let (mut suites, mut all, mut built) = (Suites::default(), Counts::default(), false);
    for line in BufReader::new(reader).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if !built && line.trim_start().starts_with("Finished ") {
            report::line("build of the tests", Counts::default(), start.elapsed());
            built = true;
        }
        all += suites.line(&line).map_or(Counts::default(), told);
    }
    all += suites.finish().map_or(Counts::default(), told);
    let status = child.wait()?;
    if !status.success() && all.failed == 0 {
        report::line("tests", Counts::FAILED, start.elapsed());
        print!("{}", suites.build);
        all += Counts::FAILED;
    }
    Ok(all)
}

fn told(suite: Suite) -> Counts {
    // Most crates have no test in some of their targets.
    if suite.counts == Counts::default() {
        return suite.counts;
    }
    report::line(&suite.name, suite.counts, suite.time);
    for (why, tests) in &suite.skipped {
        println!("    skipped {}: {why}", tests.len());
    }
    if suite.counts.failed > 0 {
        print!("{}", suite.text);
    }
    suite.counts
}
