//! The driver: whether there is one, and its errors in words.

use crate::error::{Error, ErrorKind};
use cudarc::driver::{CudaContext, DriverError, result, sys};
use std::ffi::{CStr, c_void};
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

/// A context of another library's making, the primary one or not, as a group takes it. It stays that library's: seamline never
/// destroys it. A few bytes are spent for good, so ask once for each context, and keep what this answers.
///
/// ```no_run
/// # use seamline_runtime::{Error, Group, Rank, cuda};
/// # use std::ffi::c_void;
/// /// For an engine that has a `CUcontext`.
/// ///
/// /// # Safety
/// /// The context outlives the rank and all that is made with it.
/// unsafe fn rank(context: *mut c_void) -> Result<Rank, Error> {
///     // SAFETY: the caller's promise.
///     Group::single(&unsafe { cuda::raw_context(context) }?)
/// }
/// ```
///
/// # Safety
/// `context` is a `CUcontext`, and is destroyed only when all groups, kernels, streams and buffers that are made with it are
/// gone.
///
/// # Errors
/// [`ErrorKind::NoDriver`], or [`ErrorKind::Driver`] for what the driver does not take for a context.
pub unsafe fn raw_context(context: *mut c_void) -> Result<Arc<CudaContext>, Error> {
    present()?;
    let doing = || format!("adopting the context {context:p}");
    let context: sys::CUcontext = context.cast();
    result::init().doing(doing)?;
    let (mut device, mut popped) = (0, std::ptr::null_mut());
    // SAFETY: the caller vouches for the context; what is pushed is popped again, whatever is asked in between.
    unsafe {
        sys::cuCtxPushCurrent_v2(context).result().doing(doing)?;
        let asked = sys::cuCtxGetDevice(&mut device).result();
        sys::cuCtxPopCurrent_v2(&mut popped).result().doing(doing)?;
        asked.doing(doing)?;
    }
    let count = result::device::get_count().doing(doing)?;
    let named = |ordinal: &i32| result::device::get(*ordinal).is_ok_and(|found| found == device);
    let ordinal = (0..count).find(named).unwrap_or(device) as usize;
    // SAFETY: the device is the context's. Nobody ever destroys it for us: the count of what is answered never falls to 0.
    let adopted = unsafe { CudaContext::from_raw_context(ordinal, device, context) }.doing(doing)?;
    std::mem::forget(Arc::clone(&adopted));
    Ok(adopted)
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
