//! A launch as the driver gets it, for those who measure what stands before it.

use super::launch::Config;
use crate::args::ArgList;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::pattern::{Bundle, Pattern};
use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUfunction;
use std::sync::Arc;

/// A launch as the driver gets it.
#[derive(Debug)]
pub struct DriverLaunch {
    /// The kernel.
    pub function: CUfunction,
    /// Its grid.
    pub config: Config,
    /// Its parameter.
    pub args: Vec<u64>,
}

/// What [`Kernel::launch`] would hand to [`launch_raw`](super::launch::launch_raw) for `args`, up to the first piece of a long launch: to measure what
/// stands between. Queues nothing.
///
/// # Errors
/// See [`ErrorKind`](crate::ErrorKind). No tokens are an error, as no launch comes of them.
pub fn driver_launch<P: Pattern>(
    kernel: &Kernel<P>,
    stream: &Arc<CudaStream>,
    args: P::Args<'_>,
) -> Result<DriverLaunch, Error> {
    let tokens = args.tokens();
    let mut list = ArgList::new();
    args.collect(&mut list);
    let launch = kernel.inner.admit(tokens, &mut list)?;
    kernel.inner.code.driver_launch(stream.into(), launch)
}
