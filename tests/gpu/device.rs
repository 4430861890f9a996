//! What the device says of itself.

use super::support::gpu;
use cudarc::driver::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
use seamline::cuda::__private::Device;

#[test]
fn a_whole_gpu_has_all_its_multiprocessors_and_a_share_has_fewer() {
    let Some(gpu) = gpu() else { return };
    let all = gpu.context.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT).unwrap() as u32;
    let own = Device::of(&gpu.context).unwrap().model.sms;
    match std::env::var("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") {
        Ok(share) => assert!(0 < own && own <= all, "{own} of {all} multiprocessors at {share} %"),
        Err(_) => assert_eq!(own, all),
    }
}
