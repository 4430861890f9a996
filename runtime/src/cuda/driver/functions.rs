//! The driver's functions that are called, looked up before any is: a driver may be too old, or a library of that name no driver.

use cudarc::driver::sys;
use std::ffi::c_void;
use std::path::Path;

/// All that is called, here or by what of cudarc is used here.
pub(super) const NEEDED: &[&str] = &[
    // Devices and contexts.
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuDeviceGet",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    // Code.
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuModuleUnload",
    "cuFuncGetAttribute",
    "cuLaunchKernelEx",
    "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    "cuOccupancyMaxActiveClusters",
    // Streams and events.
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuStreamIsCapturing",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventDestroy_v2",
    // Memory.
    "cuMemAlloc_v2",
    "cuMemAllocAsync",
    "cuMemFree_v2",
    "cuMemFreeAsync",
    "cuMemHostAlloc",
    "cuMemHostGetDevicePointer_v2",
    "cuMemFreeHost",
    "cuMemcpyHtoD_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD8Async",
    "cuMemsetD32Async",
];

/// The first of `functions` that the driver lacks. It is loaded: see [`super::present`].
pub(super) fn missing(functions: &[&'static str]) -> Option<&'static str> {
    let has = |name: &str| {
        // SAFETY: the driver can be loaded; the address of a function is looked at by nobody.
        unsafe { sys::culib().get::<*const c_void>(name.as_bytes()) }.is_ok()
    };
    functions.iter().copied().find(|name| !has(name))
}

/// The file that the driver came from, where the system tells; else a name of it.
pub(super) fn library() -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut files = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let is_driver = |path: &&str| {
        let name = Path::new(path).file_name();
        name.is_some_and(|name| name.to_string_lossy().starts_with("libcuda.so"))
    };
    files.find(is_driver).unwrap_or("libcuda").to_owned()
}
