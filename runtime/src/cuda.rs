//! GPUs, through the CUDA driver and NVRTC.
//!
//! Most users need [`context`] alone, or [`raw_context`] where another library has made one.

mod code;
mod device;
mod driver;
pub(crate) mod driver_launch;
mod excerpt;
mod group;
mod launch;
mod library;
mod locate;
mod memory;
mod module;
pub mod nvrtc;
mod one_grid;
pub mod output;
mod partition;
mod residency;
mod side;
mod streams;

pub(crate) use driver::DriverContext;
pub use driver::{context, driver_version, has, present, raw_context};
pub(crate) use group::CudaGroup;

/// What `prepare` and `launch` are made of, for seamline's own command and tests. Not public API.
#[doc(hidden)]
pub mod __private {
    pub use super::device::{Device, arch};
    pub use super::driver_launch::{DriverLaunch, driver_launch};
    pub use super::launch::{Config, launch_raw};
    /// Where NVRTC is.
    pub mod locate {
        pub use crate::cuda::locate::{Nvrtc, PATH_VARIABLE, nvrtc};
    }
}
