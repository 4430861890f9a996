//! GPUs, through the CUDA driver and NVRTC.
//!
//! Most users need [`context`] alone. The rest are the building blocks that `prepare` and `launch` are made of, for tools that
//! compile or launch by hand.

mod device;
mod driver;
mod excerpt;
mod group;
mod kernel;
pub mod launch;
pub mod locate;
pub(crate) mod memory;
mod module;
pub mod nvrtc;
pub mod output;
mod residency;
pub(crate) mod slice;

pub use device::{Device, arch};
pub use driver::{context, driver_version, present};
pub(crate) use driver::Doing;
pub(crate) use group::CudaGroup;
pub(crate) use kernel::CudaKernel;
