//! `cargo xtask gpu-bundle`: everything a machine with a GPU, and without cargo, runs.

use crate::cargo::{cargo, root};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// More does not travel well.
const LIMIT: u64 = 60 << 20;

/// Builds `.gpu-bundle`: the GPU tests, the command, and `run.sh`, which runs them.
pub fn run() -> Result<()> {
    let folder = root().join(".gpu-bundle");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;

    let mut tests = Vec::new();
    for built in executables(&["test", "--no-run"])? {
        // The others need their sources, a compiler, or cargo.
        if built.kind == "test" && built.name.starts_with("gpu") {
            copy(&built.file, &folder.join(&built.name))?;
            tests.push(built.name);
        }
    }
    tests.sort();
    for built in executables(&["build"])? {
        if built.kind == "bin" && built.name == "seamline" {
            copy(&built.file, &folder.join("seamline"))?;
        }
    }
    let script = folder.join("run.sh");
    std::fs::write(&script, run_script(&tests))?;
    executable(&script)?;
    let size = std::fs::read_dir(&folder)?
        .flatten()
        .filter_map(|entry| entry.metadata().ok())
        .map(|m| m.len())
        .sum::<u64>();
    if size > LIMIT {
        bail!("{} has {} MiB, and at most {} are meant to travel", folder.display(), size >> 20, LIMIT >> 20);
    }
    println!("{}: {} tests, {} MiB; run `run.sh` there", folder.display(), tests.len(), size >> 20);
    Ok(())
}

struct Built {
    name: String,
    kind: String,
    file: PathBuf,
}

/// Builds in release, stripped, and answers what cargo says it built.
fn executables(arguments: &[&str]) -> Result<Vec<Built>> {
    let mut command = cargo(arguments);
    command.args([
        "--workspace",
        "--exclude",
        "xtask",
        "--release",
        "--message-format",
        "json-render-diagnostics",
    ]);
    command.env("CARGO_PROFILE_RELEASE_STRIP", "symbols").stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot run `{command:?}`"))?;
    if !output.status.success() {
        bail!("`{command:?}` failed: see above");
    }
    let mut all = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value = serde_json::from_str(line).context("cargo printed a line that is not JSON")?;
        let text = |path: &str| message.pointer(path).and_then(Value::as_str).map(str::to_owned);
        if let (Some(file), Some(name), Some(kind)) =
            (text("/executable"), text("/target/name"), text("/target/kind/0"))
        {
            all.push(Built { name, kind, file: file.into() });
        }
    }
    Ok(all)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to)
        .map(|_| ())
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

#[cfg(unix)]
fn executable(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn executable(_: &Path) -> Result<()> {
    Ok(())
}

/// Every command under a time limit: a seam that hangs must not take the others with it.
fn run_script(tests: &[String]) -> String {
    let mut script = SCRIPT_HEAD.to_owned();
    for test in tests {
        let _ = writeln!(script, "step 300 {test} ./{test} --test-threads=1");
    }
    script += SCRIPT_BENCH;
    for test in tests {
        for tool in ["memcheck", "racecheck"] {
            let _ = writeln!(script, "sanitize {tool} ./{test} one_grid --test-threads=1");
        }
    }
    script + SCRIPT_TAIL
}

const SCRIPT_HEAD: &str = r#"#!/usr/bin/env bash
# Runs on a machine with a GPU what `cargo xtask gpu-bundle` built. Results also go to ${OUT:-out}.
set -u
cd "$(dirname "$0")"
out=${OUT:-out}
mkdir -p "$out"
failed=0

step() { # seconds, name, command...
    local limit=$1 name=$2
    shift 2
    echo "== $name"
    timeout "$limit" "$@" 2>&1 | tee "$out/$name.log"
    local status=${PIPESTATUS[0]}
    if [ "$status" -ne 0 ]; then
        echo "== $name FAILED ($status; 124 is out of time)"
        failed=1
    fi
}

sanitize() { # tool, command...
    local tool=$1
    shift
    if ! command -v compute-sanitizer >/dev/null; then
        echo "== compute-sanitizer $tool NOT RUN: not installed"
        failed=1
        return
    fi
    step 300 "$tool-$(basename "$1")" compute-sanitizer --tool "$tool" --error-exitcode 9 "$@"
}

step 60 doctor ./seamline doctor
"#;

const SCRIPT_BENCH: &str = r#"step 300 bench ./seamline bench --json
"#;

const SCRIPT_TAIL: &str = r#"exit $failed
"#;
