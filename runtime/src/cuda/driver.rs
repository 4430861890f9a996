//! The driver: whether there is one, and its errors in words.

use crate::error::{Error, ErrorKind};
use cudarc::driver::{CudaContext, DriverError, sys};
use libloading::Library;
use std::ffi::CStr;
use std::sync::{Arc, OnceLock};

/// Names under which the loader may know the driver.
const NAMES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "nvcuda.dll"];

/// The driver, loaded once and for good.
fn library() -> Option<&'static Library> {
    LIBRARY.get_or_init(|| NAMES.iter().find_map(open)).as_ref()
}

static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();

fn open(name: &&str) -> Option<Library> {
    // SAFETY: the driver's initialisers are meant to run in any process.
    unsafe { Library::new(*name) }.ok()
}

/// The driver's function `name`, if there is a driver and it has that. cudarc panics for one that is too old.
///
/// # Safety
/// `F` is the type of that function.
pub(super) unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    // SAFETY: the caller vouches for the type; the library is never unloaded.
    unsafe { library()?.get::<F>(name.to_bytes_with_nul()) }.ok().map(|function| *function)
}

/// Whether a CUDA driver can be loaded. cudarc panics without one, so everything here asks first.
///
/// # Errors
/// [`ErrorKind::NoDriver`].
pub fn present() -> Result<(), Error> {
    match library() {
        Some(_) => Ok(()),
        None => Err(ErrorKind::NoDriver { searched: NAMES.join(", ") }.into()),
    }
}

/// Whether this process has loaded it.
pub(super) fn loaded() -> bool {
    LIBRARY.get().is_some_and(Option::is_some)
}

/// The primary context of device `ordinal`: [`CudaContext::new`], with an error where that panics for want of
/// a driver.
///
/// # Errors
/// [`ErrorKind::NoDriver`], or [`ErrorKind::Driver`] where there is no such device.
pub fn context(ordinal: usize) -> Result<Arc<CudaContext>, Error> {
    present()?;
    CudaContext::new(ordinal).doing(|| format!("opening device {ordinal}"))
}

/// The CUDA version that the driver supports, as 13000 for 13.0.
///
/// # Errors
/// [`ErrorKind::NoDriver`], or [`ErrorKind::Driver`].
pub fn driver_version() -> Result<i32, Error> {
    present()?;
    let mut version = 0;
    // SAFETY: writes an int; needs no initialisation.
    unsafe { sys::cuDriverGetVersion(&mut version) }
        .result()
        .doing(|| "asking for the driver's version".into())?;
    Ok(version)
}

/// Says what was being done when the driver failed.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> Doing<T> for Result<T, DriverError> {
    #[inline]
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|error| {
            let text = |words: Result<&CStr, DriverError>| {
                words.map_or("unknown".into(), |w| w.to_string_lossy().into_owned())
            };
            ErrorKind::Driver {
                doing: what(),
                code: text(error.error_name()),
                text: text(error.error_string()),
            }
            .into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_the_driver_lacks_is_none() {
        // SAFETY: there is no such function.
        assert!(unsafe { function::<unsafe extern "C" fn()>(c"cuNotAFunction") }.is_none());
        // SAFETY: the type of cuInit.
        let init = unsafe { function::<unsafe extern "C" fn(u32) -> i32>(c"cuInit") };
        assert_eq!(init.is_some(), present().is_ok());
    }
}
