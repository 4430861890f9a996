//! GPUs, through the CUDA driver and NVRTC.
//!
//! Most users need [`context`] alone. The rest are the building blocks that `prepare` and `launch` are made
//! of, for tools that compile or launch by hand.

pub(crate) mod bare;
mod code;
mod device;
mod driver;
mod excerpt;
mod group;
pub mod launch;
mod library;
pub mod locate;
mod memory;
mod module;
pub mod nvrtc;
mod one_grid;
pub mod output;
mod residency;
mod side;
mod streams;

pub use bare::{Bare, bare};
pub use device::{Device, arch};
pub(crate) use driver::Doing;
pub use driver::{context, driver_version, present};
pub(crate) use group::CudaGroup;
