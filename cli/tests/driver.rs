//! A library by the driver's name that lacks a function: an error that names both, and no panic.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SEAM: &str = "
#[fused_pattern(dtype = bf16)]
pub fn doubled(x: Tokens) -> Tokens { let y = x + x; y }";

/// A folder with such a library. `None` without a C compiler.
fn driver() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("driver");
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    let source = folder.join("driver.c");
    std::fs::write(&source, "int cuNothing(void) { return 0; }")
        .expect("the folder for tests can be written");
    let built = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-shared", "-fPIC", "-o"])
        .args([folder.join("libcuda.so"), source])
        .output();
    match built {
        Err(error) => {
            eprintln!("SKIPPED: no C compiler (`CC` or `cc`): {error}");
            None
        }
        Ok(built) => {
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            Some(folder)
        }
    }
}

/// What the command says, on both streams, with that driver.
fn says(driver: &Path, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_seamline"))
        .args(arguments)
        .env("LD_LIBRARY_PATH", driver)
        .output()
        .expect("the command runs");
    let text = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(matches!(status.code(), Some(0 | 1)) && !text.contains("panicked"), "{arguments:?}: {text}");
    text
}

#[test]
fn no_command_panics_for_want_of_a_function() {
    let Some(folder) = driver() else { return };
    let file = folder.join("driver.rs");
    std::fs::write(&file, SEAM).expect("the folder for tests can be written");
    let file = file.to_str().unwrap();
    for arguments in [
        &["doctor"][..],
        &["check", file, "--set", "hidden=64", "-n", "1", "-t", "1"],
        &["check", file, "--set", "hidden=64", "-n", "1", "-t", "1", "--executor", "cuda"],
        &["demo", "-t", "1", "-n", "1", "--hidden", "64"],
        &["bench"],
        &["bench", "--host"],
    ] {
        let text = says(&folder, arguments);
        // The demo runs elsewhere, and so need not say why not there.
        let expected = format!("`{}/libcuda.so` has no function `cuInit`", folder.display());
        assert!(arguments[0] == "demo" || text.contains(&expected), "{arguments:?}: {text}");
    }
}
