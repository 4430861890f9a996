//! NVRTCs of other versions, built here by the system's C compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A library that says that it is NVRTC `major.minor`. `None` without a C compiler.
pub fn build(folder: &Path, (major, minor): (i32, i32)) -> Option<PathBuf> {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let library = folder.join(format!("libnvrtc.so.{major}.{minor}"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/old_nvrtc.c");
    let built = Command::new(compiler)
        .args(["-shared", "-fPIC", "-x", "c", source, "-o"])
        .arg(&library)
        .args([format!("-DVERSION_MAJOR={major}"), format!("-DVERSION_MINOR={minor}")])
        .output();
    match built {
        Err(error) => {
            eprintln!("SKIPPED: no C compiler (`CC` or `cc`): {error}");
            None
        }
        Ok(built) => {
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            Some(library)
        }
    }
}
