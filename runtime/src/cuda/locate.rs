//! Finds and loads NVRTC, where [`nvrtc`](super::nvrtc) says.

use super::library::Functions;
use crate::error::{Error, ErrorKind};
use crate::sync::lock;
use libloading::Library;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// The environment variable that says where NVRTC is: its folder, or the library itself.
pub const PATH_VARIABLE: &str = "SEAMLINE_NVRTC_PATH";

/// Names under which the loader may know it.
const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
/// The first that compiles for Hopper as C++17.
const OLDEST: (c_int, c_int) = (12, 0);

/// A loaded NVRTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nvrtc {
    /// Major and minor.
    pub version: (i32, i32),
    /// The library; `None` if the loader found it.
    pub path: Option<PathBuf>,
    /// What led to it: an environment variable, a folder, or `the loader`.
    pub found_by: String,
    /// Architectures that it compiles for, as 90 for `sm_90`.
    pub archs: Vec<i32>,
}

/// The process' NVRTC, loaded by the first call that finds one.
///
/// # Errors
/// [`ErrorKind::NoNvrtc`] names every place, with what does not work there; [`ErrorKind::BadNvrtc`] what
/// `SEAMLINE_NVRTC_PATH` names and does not work.
pub fn nvrtc() -> Result<&'static Nvrtc, Error> {
    loaded().map(|(nvrtc, _)| nvrtc)
}

/// [`nvrtc`], and its functions.
pub(super) fn loaded() -> Result<&'static (Nvrtc, Functions), Error> {
    static NVRTC: OnceLock<(Nvrtc, Functions)> = OnceLock::new();
    static FINDING: Mutex<()> = Mutex::new(());
    if let Some(found) = NVRTC.get() {
        return Ok(found);
    }
    // Others wait for who looks first. That there is none is not remembered: one may be installed.
    let _finding = lock(&FINDING);
    match NVRTC.get() {
        Some(found) => Ok(found),
        None => {
            let found = find()?;
            Ok(NVRTC.get_or_init(|| found))
        }
    }
}

fn find() -> Result<(Nvrtc, Functions), Error> {
    let mut searched = Vec::new();
    if let Some(path) = std::env::var_os(PATH_VARIABLE).filter(|p| !p.is_empty()) {
        let what = format!("{PATH_VARIABLE}={}", Path::new(&path).display());
        return match library(Path::new(&path)) {
            Some(library) => load(&library, what),
            None => Err(ErrorKind::NoNvrtc { searched: format!("{what} (which holds no libnvrtc)") }.into()),
        };
    }
    // What cannot be used is passed over: an old toolkit must not hide a newer wheel.
    let mut unusable = Vec::new();
    for functions in NAMES.iter().filter_map(|name| Functions::load(name).ok()) {
        match ask(functions, None, "the loader".into()) {
            Ok(found) => return Ok(found),
            Err(error) => unusable.push(error),
        }
    }
    searched.push(with_reasons(format!("the loader's paths for {}", NAMES.join(", ")), unusable));
    for (what, folders) in places() {
        let mut unusable = Vec::new();
        for library in folders.iter().filter_map(|folder| library(folder)) {
            match load(&library, what.clone()) {
                Ok(found) => return Ok(found),
                Err(error) => unusable.push(error),
            }
        }
        searched.push(with_reasons(what, unusable));
    }
    Err(ErrorKind::NoNvrtc { searched: searched.join("; ") }.into())
}

/// A place, and why what was there cannot be used.
fn with_reasons(place: String, unusable: Vec<Error>) -> String {
    let reasons = unusable.iter().filter_map(|error| match error.kind() {
        ErrorKind::BadNvrtc { path, reason } => Some(format!("{path} cannot be used: {reason}")),
        _ => None,
    });
    match reasons.collect::<Vec<_>>() {
        reasons if reasons.is_empty() => place,
        reasons => format!("{place} ({})", reasons.join(", ")),
    }
}

/// Where it may be: what leads there, and the folders.
fn places() -> Vec<(String, Vec<PathBuf>)> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let toolkit = |root: &Path| {
        ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"].map(|f| root.join(f)).to_vec()
    };
    let mut places = Vec::new();
    for name in ["CUDA_PATH", "CUDA_HOME"] {
        places.push((name.to_owned(), variable(name).iter().flat_map(|root| toolkit(root)).collect()));
    }
    let installed = entries(Path::new("/usr/local"), |name| name.starts_with("cuda"));
    places.push(("/usr/local/cuda*".into(), installed.iter().flat_map(|root| toolkit(root)).collect()));
    let conda = variable("CONDA_PREFIX");
    places.push(("conda (CONDA_PREFIX)".into(), conda.iter().flat_map(|root| toolkit(root)).collect()));

    let mut sites = variable("PYTHONPATH").map_or(Vec::new(), |v| std::env::split_paths(&v).collect());
    let home = variable("HOME").map(|home| home.join(".local"));
    let roots = [variable("VIRTUAL_ENV"), conda, home, Some("/usr/local".into()), Some("/usr".into())];
    for root in roots.into_iter().flatten() {
        for python in entries(&root.join("lib"), |name| name.starts_with("python3")) {
            sites.extend(["site-packages", "dist-packages"].map(|site| python.join(site)));
        }
    }
    let wheels = sites.iter().flat_map(|site| entries(&site.join("nvidia"), |_| true));
    places.push((
        "pip's nvidia packages (site-packages/nvidia/*/lib)".into(),
        wheels.map(|w| w.join("lib")).collect(),
    ));
    places
}

/// The entries of a folder whose name is wanted, the last name first: newer versions mostly sort later.
fn entries(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> =
        entries.filter(|e| e.file_name().to_str().is_some_and(&wanted)).map(|e| e.path()).collect();
    paths.sort_unstable_by(|a, b| b.cmp(a));
    paths
}

/// NVRTC in `place`, which may be the file itself. Its absolute path: a mere name the loader would look for elsewhere.
fn library(place: &Path) -> Option<PathBuf> {
    let place = std::path::absolute(place).ok()?;
    match place.is_file() {
        true => Some(place),
        false => libraries(&place, "libnvrtc.so").into_iter().next(),
    }
}

/// The files of a folder whose name begins so, as [`entries`].
fn libraries(folder: &Path, start: &str) -> Vec<PathBuf> {
    let mut paths = entries(folder, |name| name.starts_with(start));
    paths.retain(|path| path.is_file());
    paths
}

fn load(library: &Path, found_by: String) -> Result<(Nvrtc, Functions), Error> {
    let folder = library.parent().unwrap_or(Path::new("."));
    for builtins in libraries(folder, "libnvrtc-builtins.so") {
        // SAFETY: NVRTC's initialisers are meant to run in any process.
        let loaded = unsafe { Library::new(&builtins) };
        // Never unloaded: NVRTC finds it by name, since it is loaded.
        std::mem::forget(loaded.map_err(|error| bad(&builtins, error.to_string()))?);
    }
    let functions = Functions::load(library).map_err(|error| bad(library, error.to_string()))?;
    ask(functions, Some(library.to_owned()), found_by)
}

/// Asks the library what it is.
fn ask(functions: Functions, path: Option<PathBuf>, found_by: String) -> Result<(Nvrtc, Functions), Error> {
    let (mut version, mut count) = ((0, 0), 0);
    let place = path.clone().unwrap_or_else(|| found_by.clone().into());
    let ask = |code| functions.result(code).map_err(|reason| bad(&place, reason));
    // SAFETY: writes two ints.
    ask(unsafe { (functions.version)(&mut version.0, &mut version.1) })?;
    if version < OLDEST {
        let reason = format!("it is version {}.{}, and 12.0 or newer is needed", version.0, version.1);
        return Err(bad(&place, reason));
    }
    // SAFETY: writes an int.
    ask(unsafe { (functions.count_archs)(&mut count) })?;
    let mut archs = vec![0; count.max(0) as usize];
    // SAFETY: writes as many ints as it has said.
    ask(unsafe { (functions.archs)(archs.as_mut_ptr()) })?;
    Ok((Nvrtc { version, path, found_by, archs }, functions))
}

fn bad(path: &Path, reason: String) -> Error {
    ErrorKind::BadNvrtc { path: path.display().to_string(), reason }.into()
}
