//! Built objects, loaded.

use crate::SimError;
#[cfg(target_os = "linux")]
use crate::tell;
use std::fs::File;
use std::path::{Path, PathBuf};

/// An object in this process. Its file may be gone.
#[derive(Debug)]
pub(crate) struct Object {
    library: libloading::Library,
    path: PathBuf,
    compiler: String,
    /// The copy that was loaded, open for as long: the loader tells objects by their names, and the number is in its name.
    _copy: Option<File>,
}

impl Object {
    /// Loads what `compiler` built to `path`.
    pub fn load(path: &Path, compiler: String) -> Result<Object, SimError> {
        // SAFETY: the object was just built from kernels, or by an earlier run of this user: the folder was seen to be this
        // user's alone, and the checksum is right. It has no initialisers.
        let loaded = unsafe { libloading::Library::new(path) };
        let path = path.to_owned();
        match loaded {
            Ok(library) => Ok(Object { library, path, compiler, _copy: None }),
            Err(error) => {
                let reason = error.to_string();
                match in_memory(&path) {
                    Some((library, copy)) => {
                        #[cfg(target_os = "linux")]
                        tell::once(&SimError::NoExecution { path: path.clone(), reason });
                        Ok(Object { library, path, compiler, _copy: Some(copy) })
                    }
                    None => Err(SimError::Load { path, compiler, reason }),
                }
            }
        }
    }

    /// The function `name`.
    ///
    /// # Safety
    /// It has this type, and is not called once the object is gone.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, SimError> {
        // SAFETY: the caller vouches for it.
        let found = unsafe { self.library.get::<F>(name.as_bytes()) };
        found.map(|symbol| *symbol).map_err(|error| SimError::Load {
            path: self.path.clone(),
            compiler: self.compiler.clone(),
            reason: error.to_string(),
        })
    }

    #[cfg(test)]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A copy of `path` in memory, loaded: a disk may be mounted so that nothing on it is run.
#[cfg(target_os = "linux")]
fn in_memory(path: &Path) -> Option<(libloading::Library, File)> {
    use std::os::fd::{AsRawFd, FromRawFd};
    let bytes = std::fs::read(path).ok()?;
    // SAFETY: a C string, and no other memory; the descriptor is new, so nobody else's.
    let mut copy = unsafe {
        let descriptor = libc::memfd_create(c"seamline-sim".as_ptr(), libc::MFD_CLOEXEC);
        (descriptor >= 0).then(|| File::from_raw_fd(descriptor))
    }?;
    std::io::Write::write_all(&mut copy, &bytes).ok()?;
    // SAFETY: as in `load`: the same bytes.
    let library = unsafe { libloading::Library::new(format!("/proc/self/fd/{}", copy.as_raw_fd())) };
    Some((library.ok()?, copy))
}

#[cfg(not(target_os = "linux"))]
fn in_memory(_path: &Path) -> Option<(libloading::Library, File)> {
    None
}
