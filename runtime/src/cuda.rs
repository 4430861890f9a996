//! GPUs, through the CUDA driver and NVRTC.
//!
//! Most users need [`context`] alone. The rest are the building blocks that `prepare` and `launch` are made
//! of, for tools that compile or launch by hand.

mod bare;
mod device;
mod driver;
mod excerpt;
mod group;
mod kernel;
pub mod launch;
mod library;
pub mod locate;
pub(crate) mod memory;
mod module;
pub mod nvrtc;
mod one_grid;
pub mod output;
mod partition;
mod residency;
pub(crate) mod side;
pub(crate) mod slice;
mod streams;

pub use bare::{Bare, bare};
pub use device::{Device, arch};
pub(crate) use driver::Doing;
pub use driver::{context, driver_version, present};
pub(crate) use group::CudaGroup;
pub(crate) use kernel::CudaKernel;
