//! A library by the driver's name that lacks functions: an error that names both, and no panic.
#![cfg(all(feature = "cuda", target_os = "linux"))]

use seamline_runtime::{ErrorKind, cuda};
use std::path::Path;
use std::process::Command;

/// In a process of its own, since the driver is loaded once: this test, started by itself.
const CHILD: &str = "SEAMLINE_TEST_OLD_DRIVER";

/// Builds a driver that has `functions`, each of which says that there is no device. False without a C compiler.
fn build(folder: &Path, functions: &[String]) -> bool {
    let list: String = functions.iter().map(|name| format!("FUNCTION({name}) ")).collect();
    let built = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-shared", "-fPIC", "-o"])
        .arg(folder.join("libcuda.so"))
        .arg(format!("-DFUNCTIONS={list}"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/old_driver.c"))
        .output();
    match built {
        Err(error) => {
            eprintln!("SKIPPED: no C compiler (`CC` or `cc`): {error}");
            false
        }
        Ok(built) => {
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            true
        }
    }
}

/// What a process says that has this driver.
fn ask(folder: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["every_function_that_is_missing_is_named", "--exact", "--nocapture"])
        .env(CHILD, "1")
        .env("LD_LIBRARY_PATH", folder)
        .output()
        .unwrap();
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success() && !text.contains("panicked"), "{text}");
    text
}

#[test]
fn every_function_that_is_missing_is_named() {
    if std::env::var_os(CHILD).is_some() {
        for error in [cuda::driver_version().err(), cuda::context(0).err()] {
            let error = error.expect("there is no device");
            if let ErrorKind::OldDriver { function, .. } = error.kind() {
                println!("lacks={function}=");
            }
            println!("{error}");
        }
        return;
    }
    let folder = std::env::temp_dir().join(format!("seamline-old-driver-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut functions = vec!["cuNothing".to_owned()];
    while build(&folder, &functions) {
        let text = ask(&folder);
        let Some(lacks) = text.split('=').nth(1) else {
            assert!(text.contains("asking for the driver's version failed"), "{text}");
            assert!(text.contains("opening device 0 failed"), "{text}");
            break;
        };
        let library = folder.join("libcuda.so");
        let expected = format!("the CUDA driver `{}` has no function `{lacks}`", library.display());
        assert!(text.contains(&expected), "{text}");
        assert!(!functions.iter().any(|name| name == lacks), "`{lacks}` is there");
        functions.push(lacks.to_owned());
    }
    for needed in ["cuLaunchKernelEx", "cuDriverGetVersion", "cuGetErrorString"] {
        assert!(functions.len() == 1 || functions.iter().any(|name| name == needed), "{needed}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
