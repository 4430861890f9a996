//! The driver: whether there is one, and its errors in words.

use crate::error::{Error, ErrorKind};
use cudarc::driver::{CudaContext, DriverError, sys};
use std::ffi::CStr;
use std::sync::{Arc, OnceLock};

/// Names under which the loader may know the driver.
const NAMES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "nvcuda.dll"];
static PRESENT: OnceLock<bool> = OnceLock::new();

/// Whether a CUDA driver can be loaded. cudarc panics without one, so everything here asks first.
///
/// # Errors
/// [`ErrorKind::NoDriver`].
pub fn present() -> Result<(), Error> {
    // SAFETY: the driver's initialisers are meant to run in any process.
    let load = |name: &&str| unsafe { libloading::Library::new(*name) }.is_ok();
    match PRESENT.get_or_init(|| NAMES.iter().any(load)) {
        true => Ok(()),
        false => Err(ErrorKind::NoDriver { searched: NAMES.join(", ") }.into()),
    }
}

/// Whether this process has loaded it.
pub(super) fn loaded() -> bool {
    PRESENT.get().is_some_and(|present| *present)
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
pub(crate) trait DriverContext<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> DriverContext<T> for Result<T, DriverError> {
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
