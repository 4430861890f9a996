//! A launch as the driver gets it, for those who measure what stands before it.

use super::launch::{Config, Ready};
use crate::args::ArgList;
use crate::error::{Error, ErrorKind};
use crate::kernel::{Kernel, Runner};
use crate::launch::pieces;
use crate::pattern::{Bundle, Pattern};
use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUfunction;
use std::sync::Arc;

/// A launch as the driver gets it.
#[derive(Debug)]
pub struct Bare {
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
/// See [`ErrorKind`]. No tokens are an error, as no launch comes of them.
pub fn bare<P: Pattern>(
    kernel: &Kernel<P>,
    stream: &Arc<CudaStream>,
    args: P::Args<'_>,
) -> Result<Bare, Error> {
    let kernel = &*kernel.inner;
    let Runner::Cuda(cuda) = &kernel.runner else {
        return Err(ErrorKind::Queue {
            executor: kernel.rank.executor(),
            expected: "`Queue::host()`",
            got: "a CUDA stream",
        }
        .into());
    };
    let tokens = args.tokens();
    let mut list = ArgList::new();
    args.collect(&mut list);
    let ready = Ready::new(kernel, cuda, stream.into(), tokens, &mut list)?;
    let none = || Error::from(ErrorKind::Count { what: "tokens", expected: 1, got: 0 });
    let (ready, (first, tokens)) = ready.zip(pieces(kernel, tokens).next()).ok_or_else(none)?;
    let step = kernel.plan.variants[ready.variant].step(tokens);
    Ok(Bare {
        function: ready.functions[step.entry].cu_function(),
        config: Config::of(&step.shape(tokens)),
        args: kernel.pack(ready.variant, step, &ready.values, (first, tokens)).to_vec(),
    })
}
