//! NVIDIA's wheels from PyPI, for machines that have no CUDA toolkit.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// A wheel that development needs.
pub struct Wheel {
    /// Name and version, for pip.
    pub requirement: &'static str,
    /// What it takes on the disk.
    pub megabytes: u32,
    /// What to do where it cannot be installed.
    pub hint: &'static str,
}

impl Wheel {
    /// Installs it into the folder `into`.
    pub fn install(&self, into: &Path) -> Result<()> {
        let Wheel { requirement, megabytes, hint } = self;
        // Not among the results: `cargo xtask nvrtc` prints a folder, for a script to take.
        eprintln!("installing {requirement} into {} ({megabytes} MB)", into.display());
        // Installed beside, then renamed: an interrupted download is not taken for a whole one.
        let fresh = into.with_extension(format!("{}.new", std::process::id()));
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        pip.arg("--no-compile").arg("--target").arg(&fresh).arg(requirement);
        let output = match pip.output() {
            Ok(output) => output,
            Err(error) => bail!(
                "cannot run python3, which installs {requirement}: {error}; install Python with pip, or {hint}"
            ),
        };
        if !output.status.success() {
            let _ = std::fs::remove_dir_all(&fresh);
            let said = String::from_utf8_lossy(&output.stderr);
            bail!(
                "pip could not install {requirement}: is pip there, and PyPI reachable? Otherwise {hint}\n{}",
                said.trim()
            );
        }
        let _ = std::fs::remove_dir_all(into);
        std::fs::rename(&fresh, into)
            .with_context(|| format!("cannot rename {} to {}", fresh.display(), into.display()))
    }
}
