//! `cargo xtask gpu-bundle`: everything a machine with a GPU, and without cargo, runs.

use crate::cargo::{cargo, root};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// More does not travel well.
const LIMIT: u64 = 60 << 20;

/// Builds `.gpu-bundle`: the GPU tests, the command, and `run.sh`, which runs them.
pub fn run() -> Result<()> {
    let folder = root().join(".gpu-bundle");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;

    let tests = executables(&["test", "--no-run", "--test", "gpu*"])?;
    let others = executables(&["build", "--bins", "--examples"])?;
    for built in tests.iter().chain(&others) {
        copy(&built.file, &folder.join(&built.name))?;
    }
    let script = folder.join("run.sh");
    std::fs::write(&script, include_str!("bundle/run.sh"))?;
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
    file: PathBuf,
}

/// Builds in release, stripped, and answers what cargo says it built.
fn executables(arguments: &[&str]) -> Result<Vec<Built>> {
    let mut command = cargo(arguments);
    // Both packages each time, so that both calls build them with the same features.
    command.args(["-p", "seamline", "-p", "seamline-cli", "--release"]);
    command.args(["--message-format", "json-render-diagnostics"]);
    command.env("CARGO_PROFILE_RELEASE_STRIP", "symbols").stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot run `{command:?}`"))?;
    if !output.status.success() {
        bail!("`{command:?}` failed: see above");
    }
    let mut all = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value = serde_json::from_str(line).context("cargo printed a line that is not JSON")?;
        let text = |path: &str| message.pointer(path).and_then(Value::as_str).map(str::to_owned);
        if let (Some(file), Some(name)) = (text("/executable"), text("/target/name")) {
            all.push(Built { name, file: file.into() });
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
