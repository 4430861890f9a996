//! `cargo xtask demo`: `seamline demo`, with NVRTC provided.

use crate::{cargo::cargo, nvrtc};
use anyhow::{Context, Result};
use std::process::ExitCode;

/// Builds the command and runs it. Its exit code says whether everything ran and agreed.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    // In release: the reference and the simulator walk some hundred million values.
    let mut command = cargo(&["run", "--quiet", "--release", "-p", "seamline-cli", "--", "demo"]);
    command.args(arguments);
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
