//! In a process of its own, since NVRTC is loaded once: the library that `SEAMLINE_NVRTC_PATH` names is the one
//! that compiles, whatever its name.
#![cfg(all(feature = "cuda", unix))]

use seamline_runtime::ErrorKind;
use seamline_runtime::cuda::{__private::locate, nvrtc};
use std::path::{Path, PathBuf};

const KERNEL: &str = "extern \"C\" __global__ void k() {}";

fn choose(path: &Path) {
    // SAFETY: the only test of this process; no other thread reads the environment.
    unsafe { std::env::set_var(locate::PATH_VARIABLE, path) };
}

/// A folder of links to NVRTC and its builtins, under which NVRTC has a name that nobody would look for.
fn renamed(folder: &Path) -> Option<PathBuf> {
    let given = PathBuf::from(std::env::var_os(locate::PATH_VARIABLE)?);
    let files: Vec<PathBuf> = std::fs::read_dir(given).ok()?.flatten().map(|e| e.path()).collect();
    let starts = |path: &&PathBuf, start| {
        path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(start))
    };
    let link = |from: &Path, name: &Path| std::os::unix::fs::symlink(from, folder.join(name)).ok();
    for builtins in files.iter().filter(|f| starts(f, "libnvrtc-builtins.so")) {
        link(builtins, Path::new(builtins.file_name()?))?;
    }
    link(files.iter().find(|f| starts(f, "libnvrtc.so"))?, Path::new("mine.so"))?;
    Some(folder.join("mine.so"))
}

#[test]
fn the_library_that_is_named_decides() {
    let folder = std::env::temp_dir().join(format!("seamline-chosen-nvrtc-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mine = renamed(&folder);

    // A file that is no library, and a library that is not NVRTC.
    let text = folder.join("libnvrtc.so.text");
    std::fs::write(&text, "not a library").unwrap();
    choose(&text);
    let error = nvrtc::compile(KERNEL, "sm_90a").unwrap_err();
    let path = text.display().to_string();
    assert!(matches!(error.kind(), ErrorKind::BadNvrtc { path: at, .. } if *at == path), "{error}");
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    if let Some(libc) =
        maps.lines().filter_map(|l| l.split_whitespace().last()).find(|p| p.contains("libc.so"))
    {
        choose(Path::new(libc));
        let error = nvrtc::compile(KERNEL, "sm_90a").unwrap_err();
        assert!(error.to_string().contains(libc) && error.to_string().contains("nvrtcVersion"), "{error}");
    }

    // None of these errors is remembered.
    match mine {
        Some(mine) => {
            choose(&mine);
            let compiled = nvrtc::compile(KERNEL, "sm_90a").unwrap();
            assert_eq!(compiled.entries[0].entry, "k");
            assert_eq!(locate::nvrtc().unwrap().path.as_deref(), Some(mine.as_path()));
        }
        None => eprintln!("SKIPPED: {} names no folder with NVRTC", locate::PATH_VARIABLE),
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
