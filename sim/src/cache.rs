//! The shared objects built before, on disk.
//!
//! The key is a hash of the source, the device layer in it, and all that the compiler makes of it ([`Compiler::identity`]). The
//! folder must be the user's alone (0700), since what it holds is run: a folder that another could have filled is not used. Beside
//! each object lies its checksum, and its source, whose lines messages name.

mod private;

use crate::SimError;
use crate::compile::Compiler;
use private::private;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// How the names of folders begin in which something is being built.
const BUILDING: &str = ".seamline-build";
/// Nothing is built for so long.
const LONGEST_BUILD: Duration = Duration::from_secs(3600);

/// A folder of objects.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

/// Where objects are kept: `$SEAMLINE_CACHE_DIR`, or `seamline` in the user's cache folder.
pub(crate) fn folder() -> Option<PathBuf> {
    let root = match std::env::var_os("SEAMLINE_CACHE_DIR").filter(|d| !d.is_empty()) {
        Some(folder) => std::path::absolute(folder).ok()?,
        None => dirs::cache_dir()?.join("seamline"),
    };
    Some(root.join("sim"))
}

/// Where objects are kept, after a try.
pub(crate) fn usable() -> Result<PathBuf, SimError> {
    let Cache { folder } = Cache::open(folder())?;
    try_out(&folder).map_err(|error| unusable(&folder, &error))?;
    Ok(folder)
}

/// Puts a file of some size there.
pub(crate) fn try_out(folder: &Path) -> io::Result<()> {
    tempfile::tempfile_in(folder)?.write_all(&[0; 1 << 20])
}

fn unusable(folder: &Path, error: &io::Error) -> SimError {
    SimError::Cache { reason: format!("`{}`: {error}", folder.display()) }
}

impl Cache {
    /// The cache in `folder`, which is made if it is not there.
    pub fn open(folder: Option<PathBuf>) -> Result<Cache, SimError> {
        let folder =
            folder.ok_or_else(|| SimError::Cache { reason: "this user has no cache folder".to_owned() })?;
        private(&folder).map_err(|error| unusable(&folder, &error))?;
        Ok(Cache { folder })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The object of `key`, if it is there and whole.
    pub fn find(&self, key: &str) -> Option<PathBuf> {
        Some(self.path(key)).filter(|path| is_whole(path))
    }

    /// Forgets an object that cannot be loaded.
    pub fn forget(&self, key: &str) {
        // If it stays, so does its error, which names it.
        let _ = fs::remove_file(self.path(key));
    }

    /// Moves a source and its object here, the object last, so that whoever looks sees all of it or nothing.
    pub fn keep(&self, key: &str, source: &Path, object: &Path) -> Result<PathBuf, SimError> {
        let path = self.path(key);
        let moved = checksum(object).and_then(|sum| {
            fs::write(object.with_extension("sum"), sum)?;
            fs::rename(source, path.with_extension("cpp"))?;
            fs::rename(object.with_extension("sum"), path.with_extension("sum"))?;
            fs::rename(object, &path)
        });
        moved.map_err(|error| unusable(&self.folder, &error))?;
        Ok(path)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(key).with_extension("so")
    }
}

/// A folder in `folder` to build something in. In the cache it is beside where the object will be: the last step is a rename.
pub(crate) fn building_place(folder: &Path) -> io::Result<TempDir> {
    sweep(folder);
    tempfile::Builder::new().prefix(BUILDING).tempdir_in(folder)
}

/// Removes what builds that were broken off have left behind.
fn sweep(folder: &Path) {
    let old = |entry: &fs::DirEntry| {
        let modified = || entry.metadata().and_then(|data| data.modified()).ok()?.elapsed().ok();
        entry.file_name().to_string_lossy().starts_with(BUILDING)
            && modified().is_some_and(|age| age > LONGEST_BUILD)
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(old) {
        // Another process may have been faster; and what stays costs a little room.
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// What tells the object of `text` from all others.
pub(crate) fn key(compiler: &Compiler, text: &str) -> String {
    let mut hash = Sha256::new();
    for part in [text, &compiler.identity(), env!("CARGO_PKG_VERSION")] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize()[..16])
}

/// Whether the object at `path` is what was once put there.
fn is_whole(path: &Path) -> bool {
    let expected = fs::read_to_string(path.with_extension("sum"));
    expected.is_ok_and(|expected| checksum(path).is_ok_and(|sum| sum == expected))
}

fn checksum(path: &Path) -> io::Result<String> {
    Ok(hex(&Sha256::digest(fs::read(path)?)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_that_were_broken_off_leave_nothing_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (name, age) in
            [(".seamline-build-now", 0), (".seamline-build-old", 2 * 3600), ("other-old", 2 * 3600)]
        {
            fs::create_dir(folder.join(name)).unwrap();
            fs::write(folder.join(name).join("kernel.cpp"), "").unwrap();
            let began = std::time::SystemTime::now() - Duration::from_secs(age);
            fs::File::open(folder.join(name)).unwrap().set_modified(began).unwrap();
        }
        let place = building_place(folder).unwrap();
        assert!(place.path().is_dir());
        let there = |name| folder.join(name).exists();
        assert!(there(".seamline-build-now") && there("other-old") && !there(".seamline-build-old"));
    }

    #[test]
    fn a_try_says_whether_anything_can_be_kept() {
        let folder = tempfile::tempdir().unwrap();
        try_out(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing stays");
        try_out(&folder.path().join("not there")).unwrap_err();
    }
}
