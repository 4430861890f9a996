//! `seamline doctor` as its user sees it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the doctor says of `what`, with a cache folder and maybe a C++ compiler of the test's own.
fn finding(what: &str, cache: &Path, cxx: Option<&Path>) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seamline"));
    command.args(["doctor", "--json"]).env("SEAMLINE_CACHE_DIR", cache).env("CUDA_VISIBLE_DEVICES", "");
    if let Some(cxx) = cxx {
        command.env("CXX", cxx);
    }
    let output = command.output().expect("the command runs");
    let findings: Vec<Value> = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    let finding = findings.iter().find(|f| f["what"] == what).expect("it looks at it");
    let text = |key: &str| finding[key].as_str().expect("it is text").to_owned();
    (text("state"), text("detail"))
}

/// A folder of its own for each test, which is empty.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    folder
}

#[test]
fn a_cache_that_can_be_written_is_ok() {
    let cache = folder("doctor").join("cache");
    let (state, detail) = finding("cache", &cache, None);
    assert_eq!(state, "ok", "{detail}");
    assert!(detail.contains(cache.join("sim").to_str().unwrap()) && cache.is_dir(), "{detail}");
}

#[test]
fn a_compiler_that_builds_nothing_is_told_though_a_kernel_is_kept() {
    let cache = folder("doctor_kept");
    let (state, detail) = finding("simulator", &cache, None);
    assert!(state == "ok" && detail.contains("built an object in"), "{detail}");
    assert!(cache.join("sim").read_dir().unwrap().count() > 0, "a kernel is kept");
    let (state, detail) = finding("simulator", &cache, Some("true".as_ref()));
    assert!(state == "missing" && detail.contains("without a shared object"), "{detail}");
}

#[test]
fn a_cache_that_cannot_be_written_is_told_with_what_to_set() {
    let file = folder("doctor_file").join("file");
    std::fs::write(&file, "").unwrap();
    let (state, detail) = finding("cache", &file, None);
    assert_eq!(state, "absent", "kernels run without it: {detail}");
    let place = format!("`{}`: ", file.join("sim").display());
    assert!(detail.contains(&place) && detail.contains("set SEAMLINE_CACHE_DIR to"), "{detail}");
}

#[cfg(unix)]
#[test]
fn a_cache_that_others_may_enter_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let cache = folder("doctor_open");
    std::fs::create_dir(cache.join("sim")).unwrap();
    std::fs::set_permissions(cache.join("sim"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (state, detail) = finding("cache", &cache, None);
    assert!(state == "absent" && detail.contains("others may enter it"), "{state}: {detail}");
}

#[cfg(unix)]
#[test]
fn what_is_no_compiler_for_this_machine_is_named_with_its_variable() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("doctor_compilers");
    let script = |name: &str, lines: &str| {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n[ \"$1\" = --version ] && exit\n{lines}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let scripts = [
        ("builds_nothing", "exit 0", "without a shared object"),
        (
            "builds_other",
            "while [ \"$1\" != -o ]; do shift; done; echo another machine > \"$2\"
            printf 'kernel.cpp:1:1:f\\t8\\tstatic\\n' > \"${2%.so}.su\"",
            "name a compiler that builds for this machine in CXX",
        ),
        ("fails", "exit 3", "it says nothing, and ends with exit status: 3"),
    ];
    for (name, lines, expected) in scripts {
        let cxx = script(name, lines);
        let (state, detail) = finding("simulator", &folder.join("cache"), Some(&cxx));
        assert_eq!(state, "missing", "{detail}");
        let name = format!("`{}`", cxx.display());
        assert!(detail.contains(&name) && detail.contains(expected), "{detail}");
    }
}
