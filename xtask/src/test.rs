//! `cargo xtask test`: everything that can be checked on this machine.

use crate::cargo::cargo;
use crate::report::{self, Counts};
use crate::suites::{Suite, Suites};
use crate::{nvdisasm, nvrtc};
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Steps that either hold or do not.
const CHECKS: [(&str, &[&str]); 6] = [
    ("format", &["fmt", "--all", "--", "--check"]),
    ("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    ("lints without CUDA", &["clippy", "-p", "seamline", "--no-default-features", "--", "-D", "warnings"]),
    ("docs", &["doc", "--workspace", "--no-deps"]),
    // What a registry would refuse. Building from the packages would compile everything once more.
    ("packages", &["package", "--workspace", "--no-verify", "--allow-dirty", "--offline"]),
    // A subset that runs on the reference: the rest needs CUDA, or is the same with it.
    ("tests without CUDA", &["test", "-p", "seamline", "--no-default-features", "--lib", "--test", "launch"]),
];

/// Runs all steps, whatever fails. The exit code says whether something did.
pub fn run() -> Result<ExitCode> {
    let start = Instant::now();
    let mut all = Counts::default();
    for (name, arguments) in CHECKS {
        all += check(name, cargo(arguments).env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    all += users_build_no_syn()?;
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
    match nvdisasm::provide() {
        Ok(found) => {
            tests.env(nvdisasm::VARIABLE, found);
        }
        Err(error) => {
            println!("no nvdisasm: {error:#}");
            report::line("nvdisasm", Counts::SKIPPED, Duration::ZERO);
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
    let said = [output.stdout, output.stderr].concat();
    let failure = (!output.status.success()).then(|| String::from_utf8_lossy(&said).into_owned());
    Ok(checked(name, start, failure))
}

/// The macro emits its graphs as constants, so that only macros need a parser: no binary is to hold one.
fn users_build_no_syn() -> Result<Counts> {
    const TREE: [&str; 9] =
        ["tree", "-p", "seamline", "-e", "normal,no-proc-macro", "--prefix", "none", "--format", "{lib}"];
    let start = Instant::now();
    let mut failure = String::new();
    for features in [&[][..], &["--no-default-features"], &["--all-features"]] {
        let mut command = cargo(&TREE);
        let output = command.args(features).output().with_context(|| format!("cannot run `{command:?}`"))?;
        let tree = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            failure += &String::from_utf8_lossy(&output.stderr);
        } else if !libraries(&tree).any(|library| library == "seamline") {
            failure += &format!("`{command:?}` does not list seamline itself:\n{tree}");
        } else if let Some(parser) = parser_in(&tree) {
            failure += &format!("`{command:?}` lists {parser}, and only macros are to need it\n");
        }
    }
    Ok(checked("no parser in users' binaries", start, (!failure.is_empty()).then_some(failure)))
}

/// The names in `cargo tree`'s list, which are marked where they come again.
fn libraries(tree: &str) -> impl Iterator<Item = &str> {
    tree.lines().filter_map(|line| line.split_whitespace().next())
}

fn parser_in(tree: &str) -> Option<&str> {
    libraries(tree).find(|library| ["syn", "quote", "proc_macro2"].contains(library))
}

fn checked(name: &str, start: Instant, failure: Option<String>) -> Counts {
    let counts = if failure.is_none() { Counts::PASSED } else { Counts::FAILED };
    report::line(name, counts, start.elapsed());
    print!("{}", failure.unwrap_or_default());
    counts
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parser_in_a_tree_is_seen() {
        assert_eq!(parser_in("seamline\nhalf\nsynstructure\nhalf (*)\n"), None);
        assert_eq!(parser_in("seamline\nserde_derive\nsyn (*)\n"), Some("syn"));
    }
}
