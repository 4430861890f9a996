//! The simulator with folders that cannot be used: a run succeeds all the same, and says once what is wrong.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SEAM: &str = "
#[fused_pattern(dtype = bf16)]
pub fn doubled(x: Tokens) -> Tokens { let y = x + x; y }";

/// A folder of its own for each test, which is empty.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    folder
}

/// `seamline check` of a file in `folder`, as a shell runs it.
fn check(folder: &Path) -> String {
    let file = folder.join("seam.rs");
    std::fs::write(&file, SEAM).expect("the folder for tests can be written");
    let command = env!("CARGO_BIN_EXE_seamline");
    format!("{command} check {} --set hidden=64 -n 1 -t 1 --executor sim", file.display())
}

/// Runs a shell with `variables`; answers what was written, once all cases were equal.
fn succeeds(script: &str, variables: &[(&str, &Path)]) -> String {
    let Output { status, stdout, stderr } = Command::new("sh")
        .args(["-c", script])
        .envs(variables.iter().copied())
        .output()
        .expect("there is a shell");
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && out.contains("8 of 8 cases equal"), "{out}{err}");
    err.into_owned()
}

/// As [`succeeds`], with a file system of `options` mounted at `at`; `None` where tests may not mount.
fn succeeds_on(options: &str, at: &Path, prepare: &str, script: &str, cache: &Path) -> Option<String> {
    let mount = format!("mount -t tmpfs -o {options} none {}", at.display());
    let alone = |script: &str| format!("unshare --user --map-root-user --mount sh -c '{script}'");
    let tried = Command::new("sh").args(["-c", &alone(&mount)]).output().expect("there is a shell");
    if !tried.status.success() {
        eprintln!("SKIPPED: nothing can be mounted: {}", String::from_utf8_lossy(&tried.stderr));
        return None;
    }
    let script = alone(&format!("{mount} && {prepare} && {script}"));
    Some(succeeds(&script, &[("SEAMLINE_CACHE_DIR", cache)]))
}

fn warnings(text: &str) -> usize {
    text.matches("warning: ").count()
}

#[test]
fn a_cache_on_a_disk_that_nothing_may_run_from_is_a_cache() {
    let folder = folder("noexec");
    let mounted = folder.join("mounted");
    std::fs::create_dir(&mounted).unwrap();
    let twice = format!("{0} && {0}", check(&folder));
    if let Some(err) = succeeds_on("noexec", &mounted, "true", &twice, &mounted) {
        assert!(err.contains("mounted noexec?") && warnings(&err) == 2, "once per process: {err}");
    }
}

#[test]
fn a_full_disk_costs_what_is_not_kept() {
    let folder = folder("full");
    let mounted = folder.join("mounted");
    std::fs::create_dir(&mounted).unwrap();
    let fill =
        format!("mkdir -p {0}/sim && chmod 700 {0}/sim && ! cat /dev/zero 2>&- >{0}/fill", mounted.display());
    if let Some(err) = succeeds_on("size=1m", &mounted, &fill, &check(&folder), &mounted) {
        assert!(err.contains("No space left on device") && warnings(&err) == 1, "{err}");
    }
}

#[test]
fn a_temporary_folder_that_is_missing_is_not_needed() {
    let folder = folder("no_tmp");
    let (cache, gone) = (folder.join("cache"), folder.join("gone"));
    for _ in 0..2 {
        let err = succeeds(&check(&folder), &[("SEAMLINE_CACHE_DIR", &cache), ("TMPDIR", &gone)]);
        assert_eq!(err, "");
    }
    let err =
        succeeds(&check(&folder), &[("SEAMLINE_CACHE_DIR", "/dev/null/none".as_ref()), ("TMPDIR", &gone)]);
    assert!(err.contains("built kernels are not kept") && warnings(&err) == 1, "{err}");
}

#[test]
fn names_are_relative_to_where_the_command_runs() {
    let folder = folder("relative");
    let script = format!(
        "cd {} && printf '#!/bin/sh\nexec c++ \"$@\"\n' >cxx && chmod +x cxx && CXX='./cxx -I .' {}",
        folder.display(),
        check(&folder)
    );
    succeeds(&script, &[("SEAMLINE_CACHE_DIR", "cache".as_ref())]);
    assert!(folder.join("cache/sim").is_dir());
}

#[test]
fn a_compiler_that_fails_to_link_says_why() {
    let folder = folder("linker");
    let output = Command::new("sh")
        .args(["-c", &check(&folder)])
        .env("CXX", "c++ -lno_such_library")
        .output()
        .expect("there is a shell");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && out.contains("-lno_such_library: "), "{out}");
}
