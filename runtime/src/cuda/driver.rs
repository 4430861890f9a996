//! The driver: whether there is one, and its errors in words.

mod functions;

use crate::error::{Error, ErrorKind};
use cudarc::driver::{CudaContext, DriverError, result, sys};
use libloading::Library;
use std::ffi::{CStr, c_void};
use std::sync::{Arc, OnceLock};

/// Names under which the loader may know the driver: the usual ones of cudarc's.
const NAMES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "nvcuda.dll"];
static PRESENT: OnceLock<Result<(), ErrorKind>> = OnceLock::new();

/// The driver's function `name`, if there is a driver and it has that, which kernels do not need.
///
/// # Safety
/// `F` is the type of that function.
pub(super) unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    present().ok()?;
    // SAFETY: it is loaded already, by cudarc, and its initialisers have run.
    let open = |name: &&str| unsafe { Library::new(*name) }.ok();
    let library = LIBRARY.get_or_init(|| NAMES.iter().find_map(open)).as_ref()?;
    // SAFETY: the caller vouches for the type; the library is never unloaded.
    unsafe { library.get::<F>(name.to_bytes_with_nul()) }.ok().map(|function| *function)
}

/// Whether there is a CUDA driver, with every function that kernels need. cudarc panics for want of either, so
/// everything here asks first.
///
/// # Errors
/// [`ErrorKind::NoDriver`], [`ErrorKind::OldDriver`].
pub fn present() -> Result<(), Error> {
    Ok(PRESENT.get_or_init(look_up).clone()?)
}

fn look_up() -> Result<(), ErrorKind> {
    // SAFETY: the driver's initialisers are meant to run in any process.
    if !unsafe { sys::is_culib_present() } {
        return Err(ErrorKind::NoDriver { searched: NAMES.join(", ") });
    }
    functions::missing(functions::NEEDED).map_or(Ok(()), |function| Err(lacks(function)))
}

/// Whether the driver also has `functions`, which kernels do not need: for tools that call them through cudarc, which panics where
/// one is missing.
///
/// # Errors
/// As [`present`].
pub fn has(functions: &[&'static str]) -> Result<(), Error> {
    present()?;
    functions::missing(functions).map_or(Ok(()), |function| Err(lacks(function).into()))
}

fn lacks(function: &str) -> ErrorKind {
    ErrorKind::OldDriver { library: functions::library(), function: function.to_owned() }
}

/// Whether this process has loaded it.
pub(super) fn loaded() -> bool {
    PRESENT.get().is_some_and(Result::is_ok)
}

/// The primary context of device `ordinal`: [`CudaContext::new`], with an error where that panics for want of
/// a driver.
///
/// # Errors
/// Those of [`present`], or [`ErrorKind::Driver`] where there is no such device.
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
/// Those of [`present`], or [`ErrorKind::Driver`].
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
