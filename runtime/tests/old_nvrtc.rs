//! In a process of its own, since NVRTC is loaded once: an NVRTC that is too old, built here by the system's C compiler.
#![cfg(all(feature = "cuda", unix))]

mod support;

use seamline_runtime::ErrorKind;
use seamline_runtime::cuda::{
    __private::{arch, locate},
    nvrtc,
};
use std::path::Path;
use support::build;

const KERNEL: &str = "extern \"C\" __global__ void k() {}";

fn choose(path: &Path) {
    // SAFETY: the only test of this process; no other thread reads the environment.
    unsafe { std::env::set_var(locate::PATH_VARIABLE, path) };
}

#[test]
fn an_nvrtc_that_is_too_old_is_named_with_its_version() {
    let folder = std::env::temp_dir().join(format!("seamline-old-nvrtc-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let libraries: Option<Vec<_>> = [(11, 8), (12, 4)].into_iter().map(|v| build(&folder, v)).collect();
    if let Some(libraries) = libraries {
        refused(&libraries[0], &libraries[1]);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

fn refused(too_old: &Path, old: &Path) {
    // Older than any that compiles the templates.
    choose(too_old);
    let error = nvrtc::compile(KERNEL, "sm_90a").unwrap_err();
    let path = too_old.display().to_string();
    assert!(matches!(error.kind(), ErrorKind::BadNvrtc { path: at, .. } if *at == path), "{error}");
    assert!(error.to_string().contains("it is version 11.8, and 12.0 or newer is needed"), "{error}");

    // Old enough not to know the GPU. That the other one was refused is not remembered.
    choose(old);
    let blackwell = arch((10, 0));
    let error = nvrtc::compile(KERNEL, &blackwell).unwrap_err();
    let ErrorKind::OldNvrtc { version: (12, 4), arch: wanted, known, .. } = error.kind() else {
        panic!("{error}");
    };
    assert_eq!((wanted, known.as_str()), (&blackwell, "sm_52, sm_70, sm_80, sm_90"));
    assert!(error.to_string().contains("NVRTC 12.4 does not compile for sm_100a"), "{error}");
    assert!(error.to_string().contains("install a newer one"), "{error}");
    assert_eq!(locate::nvrtc().unwrap().path.as_deref(), Some(old));

    // A GPU that it knows gets as far as the compiler, whose refusal is told in its words.
    let error = nvrtc::compile(KERNEL, &arch((9, 0))).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BadNvrtc { .. }), "{error}");
    assert!(error.to_string().contains("creating the program: refused by the test"), "{error}");
}
