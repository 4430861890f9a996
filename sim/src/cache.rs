//! The shared objects built before, on disk.
//!
//! The key is a hash of the source, the device layer in it, the flags and the compiler's version. The folder must be the
//! user's alone (0700), since what it holds is run: a folder that another could have filled is not used. Beside each object lies its checksum, and its source, whose lines messages name.
//! A cache never turns a run into a failure: what is broken is built again, and a folder that cannot be written costs a build
//! per process.

use crate::SimError;
use crate::compile::Compiler;
use crate::stack;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// How the names of folders begin in which something is being built.
const BUILDING: &str = ".build";
/// Nothing is built for so long.
const LONGEST_BUILD: Duration = Duration::from_secs(3600);

/// A built object, and the folder that goes with it when it is not cached.
#[derive(Debug)]
pub(crate) struct Built {
    pub path: PathBuf,
    /// What built it.
    pub compiler: String,
    pub _temporary: Option<TempDir>,
}

/// Where objects are kept: `$SEAMLINE_CACHE_DIR`, or `seamline` in the user's cache folder.
pub(crate) fn folder() -> Option<PathBuf> {
    let root = match std::env::var_os("SEAMLINE_CACHE_DIR").filter(|d| !d.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => dirs::cache_dir()?.join("seamline"),
    };
    Some(root.join("sim"))
}

/// Where objects are kept, after a try.
pub(crate) fn usable() -> Result<PathBuf, SimError> {
    let folder =
        folder().ok_or_else(|| SimError::Cache { reason: "this user has no cache folder".to_owned() })?;
    try_out(&folder)
        .map_err(|error| SimError::Cache { reason: format!("`{}`: {error}", folder.display()) })?;
    Ok(folder)
}

/// Makes the folder, and puts a file of some size there.
fn try_out(folder: &Path) -> std::io::Result<()> {
    private(folder)?;
    tempfile::tempfile_in(folder)?.write_all(&[0; 1 << 16])
}

/// The object of `text`, from `folder` or built.
pub(crate) fn object(pattern: &str, text: &str, folder: Option<PathBuf>) -> Result<Built, SimError> {
    let compiler = Compiler::find()?;
    let built = |path, _temporary| Built { path, compiler: compiler.name(), _temporary };
    let key = key(&compiler, text);
    let folder = folder.filter(|f| private(f).is_ok());
    let cached = folder.as_ref().map(|f| f.join(&key).with_extension("so"));
    if let Some(path) = cached.clone().filter(|p| is_whole(p)) {
        return Ok(built(path, None));
    }
    // Built beside where it will be, so that the last step is a rename: whoever looks sees all of it or nothing.
    let beside = folder.and_then(|f| {
        sweep(&f);
        tempfile::Builder::new().prefix(BUILDING).tempdir_in(f).ok()
    });
    let (place, cached) = match beside {
        Some(place) => (place, cached),
        None => (tempfile::tempdir().map_err(|e| io("create", &std::env::temp_dir(), e))?, None),
    };
    let (source, object) = (place.path().join("kernel.cpp"), place.path().join("kernel.so"));
    fs::write(&source, text).map_err(|e| io("write", &source, e))?;
    compiler.build(pattern, text, &source, &object)?;
    if let Some(path) = cached.filter(|path| keep(&source, &object, path).is_ok()) {
        return Ok(built(path, None));
    }
    Ok(built(object, Some(place)))
}

/// Removes what builds that were broken off have left behind.
fn sweep(folder: &Path) {
    let old = |entry: &fs::DirEntry| {
        let modified = entry.metadata().and_then(|data| data.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        entry.file_name().to_string_lossy().starts_with(BUILDING)
            && age.is_some_and(|age| age > LONGEST_BUILD)
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(old) {
        // Another process may have been faster; and what stays costs a little room.
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// Forgets an object that cannot be loaded.
pub(crate) fn forget(built: &Built) {
    // If it stays, so does its error, which names it.
    let _ = fs::remove_file(&built.path);
}

fn key(compiler: &Compiler, text: &str) -> String {
    let mut hash = Sha256::new();
    for part in [
        text,
        &compiler.flags(stack::SMALLEST).join(" "),
        &compiler.version,
        &compiler.name(),
        env!("CARGO_PKG_VERSION"),
    ] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize()[..16])
}

/// Moves a source and its object to `path`, the object last.
fn keep(source: &Path, object: &Path, path: &Path) -> std::io::Result<()> {
    fs::write(object.with_extension("sum"), checksum(object)?)?;
    fs::rename(source, path.with_extension("cpp"))?;
    fs::rename(object.with_extension("sum"), path.with_extension("sum"))?;
    fs::rename(object, path)
}

/// Whether the object at `path` is what was once put there.
fn is_whole(path: &Path) -> bool {
    let expected = fs::read_to_string(path.with_extension("sum"));
    expected.is_ok_and(|expected| checksum(path).is_ok_and(|sum| sum == expected))
}

fn checksum(path: &Path) -> std::io::Result<String> {
    Ok(hex(&Sha256::digest(fs::read(path)?)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn io(action: &'static str, path: &Path, source: std::io::Error) -> SimError {
    SimError::Io { action, path: path.to_owned(), source }
}

/// Makes `folder` if it is not there, and makes sure that nobody but this user could have put anything in it.
fn private(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    #[cfg(unix)]
    is_alone(folder, user()?)?;
    Ok(())
}

/// The effective user: who owns what this process makes.
#[cfg(unix)]
fn user() -> std::io::Result<u32> {
    use std::os::unix::fs::MetadataExt;
    Ok(tempfile::tempfile()?.metadata()?.uid())
}

/// Refuses a folder that is not `user`'s, or that others may enter; and links, whose owners may turn them elsewhere.
#[cfg(unix)]
fn is_alone(folder: &Path, user: u32) -> std::io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let found = fs::symlink_metadata(folder)?;
    match found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0 {
        true => Ok(()),
        false => Err(std::io::Error::new(
            std::io::ErrorKind::PermissionDenied,
            "others may enter it, or it is a link or another user's",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "extern \"C\" int answer() { return 42; }";

    fn names(folder: &Path) -> Vec<String> {
        let mut names = fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect::<Vec<_>>();
        names.sort();
        names
    }

    #[test]
    fn what_was_built_is_found_again_and_what_is_broken_is_built_again() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("cache");
        let built = || object("test", TEXT, Some(folder.clone())).unwrap().path;
        let first = built();
        let files = names(&folder);
        assert_eq!(files.len(), 3, "{files:?}");
        let written = fs::metadata(&first).unwrap().modified().unwrap();
        assert_eq!(built(), first);
        assert_eq!(fs::metadata(&first).unwrap().modified().unwrap(), written);

        let whole = fs::read(&first).unwrap();
        fs::write(&first, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(built(), first);
        assert!(is_whole(&first) && names(&folder) == files);
    }

    #[cfg(unix)]
    #[test]
    fn builds_that_were_broken_off_leave_nothing_for_ever() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("cache");
        private(&folder).unwrap();
        for (name, age) in [(".build-now", 0), (".build-old", 2 * 3600), ("other-old", 2 * 3600)] {
            fs::create_dir(folder.join(name)).unwrap();
            fs::write(folder.join(name).join("kernel.cpp"), TEXT).unwrap();
            let began = std::time::SystemTime::now() - Duration::from_secs(age);
            fs::File::open(folder.join(name)).unwrap().set_modified(began).unwrap();
        }
        object("test", TEXT, Some(folder.clone())).unwrap();
        let left = names(&folder);
        // And the object, its checksum and its source.
        assert!(left.len() == 5 && left[0] == ".build-now" && left.contains(&"other-old".into()), "{left:?}");
    }

    #[cfg(unix)]
    #[test]
    fn the_folder_is_the_users_alone() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        private(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        private(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_could_fill_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("cache");
        let first = object("test", TEXT, Some(folder.clone())).unwrap();
        assert!(first.path.starts_with(&folder));

        let link = root.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(is_alone(&folder, user().unwrap() ^ 1).is_err() && private(&link).is_err());
        for mode in [0o770, 0o701, 0o755] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            let built = object("test", TEXT, Some(folder.clone())).unwrap();
            assert!(!built.path.starts_with(&folder) && built._temporary.is_some(), "mode {mode:o}");
        }
    }

    #[test]
    fn a_try_says_whether_anything_can_be_kept() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        try_out(&folder).unwrap();
        assert!(names(&folder).is_empty(), "nothing stays");
        let file = tempfile::NamedTempFile::new().unwrap();
        try_out(&file.path().join("below a file")).unwrap_err();
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_a_build() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for folder in [None, Some(file.path().join("below a file"))] {
            let built = object("test", TEXT, folder).unwrap();
            assert!(built.path.is_file() && built._temporary.is_some());
        }
    }
}
