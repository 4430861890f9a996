//! `cargo xtask demo`: `seamline demo`, with NVRTC provided.

use crate::cargo::{cargo, target};
use crate::nvrtc;
use anyhow::{Context, Result};
use std::process::ExitCode;

/// Builds the command and runs it. Its exit code says whether everything ran and agreed.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let mut command = cargo(&["run", "--quiet", "-p", "seamline-cli", "--", "demo"]);
    command.args(arguments);
    if !arguments.iter().any(|argument| argument.starts_with("--out")) {
        command.arg("--out").arg(target().join("demo"));
    }
    match nvrtc::provide() {
        Ok(found) => {
            command.env(nvrtc::VARIABLE, &found.folder);
        }
        // The demo shows it: compiling is NOT RUN, the rest runs.
        Err(error) => eprintln!("no NVRTC: {error:#}"),
    }
    let status = command.status().with_context(|| format!("cannot run `{command:?}`"))?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
