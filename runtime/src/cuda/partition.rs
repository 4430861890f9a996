//! How many multiprocessors a context has.
//!
//! Not always the device's: MPS limits a client to a share of them, a context may be made with an affinity, and a green
//! context has a partition of its own. (A MIG instance is a device of its own: its attribute is right.) Which of these
//! the device's attribute tells depends on the driver and on MPS' settings, so the context is asked too, as far as the
//! driver can: the affinity since CUDA 11.4, the partition since 12.4. The least holds.

use super::driver;
use cudarc::driver::CudaContext;
use cudarc::driver::sys::CUcontext;
use std::ffi::{c_int, c_uint};
use std::mem::MaybeUninit;

/// `CUDA_SUCCESS`. Results are numbers here: a newer driver has some that an enum of today lacks.
const SUCCESS: c_int = 0;

/// `CU_EXEC_AFFINITY_TYPE_SM_COUNT` and `CUexecAffinityParam`.
const AFFINITY_OF_MULTIPROCESSORS: c_int = 0;
#[repr(C)]
struct Affinity {
    kind: c_int,
    multiprocessors: c_uint,
}
type GetExecAffinity = unsafe extern "C" fn(*mut Affinity, c_int) -> c_int;

/// `CU_DEV_RESOURCE_TYPE_SM` and the beginning of `CUdevResource`, of which drivers write 144 bytes.
const RESOURCE_OF_MULTIPROCESSORS: c_int = 1;
#[repr(C, align(8))]
struct Resource {
    kind: c_int,
    padding: [u8; 92],
    multiprocessors: c_uint,
    rest: [u8; 156],
}
type GetDevResource = unsafe extern "C" fn(CUcontext, *mut Resource, c_int) -> c_int;

/// The multiprocessors of `context`, which is current on this thread, of a device that says it has `device`.
pub(super) fn multiprocessors(context: &CudaContext, device: u32) -> u32 {
    least(device, [affinity(), resource(context)])
}

/// The least that is told. A driver that tells nothing, or none, says nothing about partitions.
fn least(device: u32, told: [Option<u32>; 2]) -> u32 {
    told.into_iter().flatten().filter(|count| *count > 0).fold(device, u32::min)
}

fn affinity() -> Option<u32> {
    // SAFETY: the driver's function of this name has this type.
    let ask = unsafe { driver::function::<GetExecAffinity>(c"cuCtxGetExecAffinity") }?;
    let mut affinity = Affinity { kind: 0, multiprocessors: 0 };
    // SAFETY: writes the struct, for the context that is current.
    let result = unsafe { ask(&mut affinity, AFFINITY_OF_MULTIPROCESSORS) };
    (result == SUCCESS).then_some(affinity.multiprocessors)
}

fn resource(context: &CudaContext) -> Option<u32> {
    // SAFETY: the driver's function of this name has this type.
    let ask = unsafe { driver::function::<GetDevResource>(c"cuCtxGetDevResource") }?;
    let mut resource = MaybeUninit::<Resource>::zeroed();
    // SAFETY: a context that is alive; writes what is shorter than the struct, which is all integers.
    let (result, resource) = unsafe {
        let result = ask(context.cu_ctx(), resource.as_mut_ptr(), RESOURCE_OF_MULTIPROCESSORS);
        (result, resource.assume_init())
    };
    (result == SUCCESS).then_some(resource.multiprocessors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_that_the_driver_tells_holds() {
        assert_eq!(least(132, [None, None]), 132);
        assert_eq!(least(132, [Some(132), Some(132)]), 132);
        assert_eq!(least(132, [Some(66), None]), 66, "MPS, or an affinity");
        assert_eq!(least(132, [None, Some(16)]), 16, "a green context");
        assert_eq!(least(66, [Some(132), Some(132)]), 66, "MPS that only the attribute tells");
        assert_eq!(least(132, [Some(0), Some(0)]), 132, "a driver that leaves the answer out");
    }

    #[test]
    fn the_structs_are_laid_out_as_the_drivers() {
        assert_eq!(std::mem::offset_of!(Affinity, multiprocessors), 4);
        assert_eq!(std::mem::offset_of!(Resource, multiprocessors), 96);
        assert!(size_of::<Resource>() >= 144);
    }
}
