//! NVRTC for machines that have none: NVIDIA's wheel from PyPI, into the target folder.
//!
//! Fewer places are looked at than the library looks at (not the loader's paths, conda, nor Python's packages): a task that
//! links the library would build half the workspace before it starts, and the pinned wheel is what the tests were made with.

use crate::cargo::target;
use crate::wheel::Wheel;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The environment variable by which seamline finds NVRTC before anything else.
pub const VARIABLE: &str = "SEAMLINE_NVRTC_PATH";

/// Pinned: register budgets are of this version, and a later wheel must not change what a test says.
const WHEEL: Wheel = Wheel {
    requirement: "nvidia-cuda-nvrtc==13.0.88",
    megabytes: 90,
    hint: "install a CUDA toolkit and set SEAMLINE_NVRTC_PATH to the folder of its libnvrtc",
};

/// An NVRTC on this machine.
pub struct Nvrtc {
    /// The folder of libnvrtc.
    pub folder: PathBuf,
    /// Who put it there.
    pub origin: &'static str,
}

/// Finds NVRTC, or installs it into the target folder.
pub fn provide() -> Result<Nvrtc> {
    if let Some(found) = find() {
        return Ok(found);
    }
    let into = target().join("nvrtc");
    WHEEL.install(&into)?;
    let folder = in_wheel(&into).with_context(|| {
        format!(
            "`{}` left no libnvrtc in {}: remove that folder and try again",
            WHEEL.requirement,
            into.display()
        )
    })?;
    Ok(Nvrtc { folder, origin: "PyPI" })
}

fn find() -> Option<Nvrtc> {
    // Absolute: tests run in the folders of their packages.
    if let Some(path) = variable(VARIABLE).and_then(|path| std::path::absolute(path).ok()) {
        let folder = if path.is_dir() { path } else { path.parent()?.to_path_buf() };
        return Some(Nvrtc { folder, origin: VARIABLE });
    }
    if let Some(folder) = in_wheel(&target().join("nvrtc")) {
        return Some(Nvrtc { folder, origin: "the target folder" });
    }
    let toolkits = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(variable);
    toolkits
        .chain([PathBuf::from("/usr/local/cuda")])
        .flat_map(|toolkit| ["lib64", "lib", "targets/x86_64-linux/lib"].map(|lib| toolkit.join(lib)))
        .find(|folder| holds_nvrtc(folder))
        .map(|folder| Nvrtc { folder, origin: "a CUDA toolkit" })
}

/// What an environment variable names; an empty one is none.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Where a wheel keeps its libraries: `nvidia/cu13/lib`, or `nvidia/cuda_nvrtc/lib` before CUDA 13.
fn in_wheel(site: &Path) -> Option<PathBuf> {
    ["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"]
        .map(|lib| site.join(lib))
        .into_iter()
        .find(|folder| holds_nvrtc(folder))
}

fn holds_nvrtc(folder: &Path) -> bool {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    names.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("libnvrtc.so"))
}
