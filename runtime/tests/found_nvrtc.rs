//! In a process of its own, since it changes the environment and NVRTC is loaded once: where NVRTC is found when there
//! are several, of which some cannot be used.
#![cfg(all(feature = "cuda", unix))]

mod support;

use seamline_runtime::ErrorKind;
use seamline_runtime::cuda::__private::locate;
use std::path::{Path, PathBuf};
use support::build;

fn set(variable: &str, value: Option<&Path>) {
    match value {
        // SAFETY: the only test of this process; no other thread reads the environment.
        Some(value) => unsafe { std::env::set_var(variable, value) },
        // SAFETY: as above.
        None => unsafe { std::env::remove_var(variable) },
    }
}

/// A toolkit with an NVRTC that is too old, and one with a usable one beside a folder and a link that are none.
fn toolkits(root: &Path) -> Option<[PathBuf; 2]> {
    let [old, new] = ["old", "new"].map(|name| root.join(name).join("lib64"));
    std::fs::create_dir_all(&old).unwrap();
    std::fs::create_dir_all(new.join("libnvrtc.so.99")).unwrap();
    for dangling in ["libnvrtc.so.98", "libnvrtc-builtins.so.98"] {
        std::os::unix::fs::symlink("nothing", new.join(dangling)).unwrap();
    }
    Some([build(&old, (11, 8))?, build(&new, (12, 4))?])
}

#[test]
fn what_cannot_be_used_is_passed_over() {
    let root = std::env::temp_dir().join(format!("seamline-found-nvrtc-{}", std::process::id()));
    if let Some([old, new]) = toolkits(&root) {
        found(&old, &new);
    }
    std::fs::remove_dir_all(&root).unwrap();
}

fn found(old: &Path, new: &Path) {
    // A name without a folder is that of a file, as any other path is, not one for the loader to look for.
    std::env::set_current_dir(old.parent().unwrap()).unwrap();
    set(locate::PATH_VARIABLE, Some(Path::new(old.file_name().unwrap())));
    let error = locate::nvrtc().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BadNvrtc { .. }), "{error}");
    assert!(error.to_string().contains("it is version 11.8, and 12.0 or newer is needed"), "{error}");
    assert!(error.to_string().contains(old.to_str().unwrap()), "{error}");
    assert!(error.to_string().contains("SEAMLINE_NVRTC_PATH"), "{error}");

    // Unless the variable decides, the first that can be used does.
    let toolkit = |library: &Path| library.ancestors().nth(2).unwrap().to_owned();
    set(locate::PATH_VARIABLE, None);
    set("CUDA_PATH", Some(&toolkit(old)));
    set("CUDA_HOME", Some(&toolkit(new)));
    let nvrtc = locate::nvrtc().unwrap();
    match nvrtc.path.as_deref() {
        None => eprintln!("SKIPPED: the loader has an NVRTC, which comes first"),
        Some(path) => {
            assert_eq!((path, nvrtc.version, nvrtc.found_by.as_str()), (new, (12, 4), "CUDA_HOME"));
        }
    }
}
