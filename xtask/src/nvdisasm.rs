//! The disassembler, for the tests that read machine code: NVIDIA's wheel from PyPI, into the target folder.
//!
//! No toolkit's is looked for: it must know what the pinned NVRTC writes, and the wheel is small.

use crate::cargo::target;
use crate::wheel::Wheel;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The environment variable by which tests find it.
pub const VARIABLE: &str = "SEAMLINE_NVDISASM";

const WHEEL: Wheel = Wheel {
    requirement: "nvidia-cuda-nvdisasm==13.2.86",
    megabytes: 5,
    hint: "set SEAMLINE_NVDISASM to the nvdisasm of a CUDA toolkit 13",
};

/// Finds nvdisasm, or installs it into the target folder.
pub fn provide() -> Result<PathBuf> {
    let named = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    // Absolute: tests run in the folders of their packages.
    if let Some(path) = named.and_then(|path| std::path::absolute(path).ok()) {
        return Ok(path);
    }
    let into = target().join("nvdisasm");
    if let Some(found) = in_wheel(&into) {
        return Ok(found);
    }
    WHEEL.install(&into)?;
    in_wheel(&into).with_context(|| {
        format!(
            "`{}` left no nvdisasm in {}: remove that folder and try again",
            WHEEL.requirement,
            into.display()
        )
    })
}

fn in_wheel(site: &Path) -> Option<PathBuf> {
    let path = site.join("nvidia/cu13/bin/nvdisasm");
    path.is_file().then_some(path)
}
