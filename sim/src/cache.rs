//! The shared objects built before, on disk.
//!
//! The key is a hash of the source, the device layer in it, the flags and the compiler's version. The folder is the user's
//! alone (0700), since what it holds is run. A folder that cannot be written costs a build per process, never a run.

use crate::SimError;
use crate::compile::{Compiler, flags};
use crate::library::Source;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A built object, and the folder that goes with it when it is not cached.
#[derive(Debug)]
pub(crate) struct Built {
    pub path: PathBuf,
    pub _temporary: Option<TempDir>,
}

/// Where objects are kept: `$SEAMLINE_CACHE_DIR`, or `seamline` in the user's cache folder.
fn folder() -> Option<PathBuf> {
    let root = match std::env::var_os("SEAMLINE_CACHE_DIR").filter(|d| !d.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => dirs::cache_dir()?.join("seamline"),
    };
    Some(root.join("sim"))
}

/// The object of `source`: from the cache, or built.
pub(crate) fn object(source: &Source<'_>, text: &str) -> Result<Built, SimError> {
    let compiler = Compiler::find()?;
    let mut hash = Sha256::new();
    for part in [text, &flags().join(" "), &compiler.version, &compiler.name(), env!("CARGO_PKG_VERSION")] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let stem: String = hash.finalize().iter().take(16).map(|b| format!("{b:02x}")).collect();
    let cached = folder().and_then(|f| private(&f).ok().map(|()| f));
    if let Some(folder) = &cached {
        let path = folder.join(&stem).with_extension("so");
        if path.is_file() {
            return Ok(Built { path, _temporary: None });
        }
    }
    // Built beside where it will be, so that the last step is a rename: whoever looks sees all of it or nothing.
    let place = cached.as_deref().and_then(|f| tempfile::Builder::new().prefix(".build").tempdir_in(f).ok());
    let (place, kept) = match place {
        Some(place) => (place, cached),
        None => (tempfile::tempdir().map_err(|e| io("create", &std::env::temp_dir(), e))?, None),
    };
    let (cpp, so) = (place.path().join("kernel.cpp"), place.path().join("kernel.so"));
    std::fs::write(&cpp, text).map_err(|e| io("write", &cpp, e))?;
    compiler.build(source.pattern, text, &cpp, &so)?;
    if let Some(folder) = kept {
        let path = folder.join(&stem).with_extension("so");
        // The source beside it is for people: messages name its lines.
        let _ = std::fs::rename(&cpp, path.with_extension("cpp"));
        if std::fs::rename(&so, &path).is_ok() {
            return Ok(Built { path, _temporary: None });
        }
    }
    Ok(Built { path: so, _temporary: Some(place) })
}

fn io(action: &'static str, path: &Path, source: std::io::Error) -> SimError {
    SimError::Io { action, path: path.to_owned(), source }
}

/// Makes `folder` one that only this user may enter.
fn private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
