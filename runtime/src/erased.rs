//! Kernels of graphs that are known at run time only, and arguments in lists: for tools and tests.
//!
//! What `#[fused_pattern]` types at compile time is checked at launch all the same.

use crate::args::ArgList;
use crate::error::Error;
use crate::group::Rank;
use crate::kernel::{Inner, Kernel};
use crate::launch;
use crate::plan::options::Prepare;
use crate::prepare;
use crate::queue::Queue;
use seamline_codegen::Graph;

/// In place of a pattern's type.
#[derive(Clone, Copy, Debug)]
pub enum Untyped {}

/// [`Pattern::prepare_all`](crate::Pattern::prepare_all) for `graph`.
///
/// # Errors
/// See [`ErrorKind`](crate::ErrorKind).
pub fn prepare_all(
    graph: &'static Graph,
    ranks: &[Rank],
    options: &Prepare,
) -> Result<Vec<Kernel<Untyped>>, Error> {
    Ok(prepare::prepare_all(graph, ranks, options)?.into_iter().map(Kernel::new).collect())
}

/// [`Kernel::launch`] with `args` in the order that [`Bundle::collect`](crate::Bundle::collect) states.
///
/// # Errors
/// See [`ErrorKind`](crate::ErrorKind). Nothing was queued then, but see [`Error`] for a driver that fails.
pub fn launch<'q, P>(
    kernel: &Kernel<P>,
    queue: impl Into<Queue<'q>>,
    tokens: usize,
    mut args: ArgList<'_>,
) -> Result<(), Error> {
    launch::launch(&kernel.inner, queue.into(), tokens, &mut args)
}

/// [`launch_all`](crate::launch_all) with a list of arguments per rank.
///
/// # Errors
/// See [`ErrorKind`](crate::ErrorKind). Nothing was queued then, but see [`Error`] for a driver that fails.
pub fn launch_all<'a, 'q, P>(
    kernels: &[Kernel<P>],
    queues: impl IntoIterator<Item = impl Into<Queue<'q>>>,
    tokens: usize,
    args: impl IntoIterator<Item = ArgList<'a>>,
) -> Result<(), Error> {
    let mut lists: Vec<_> = args.into_iter().collect();
    let queues: Vec<Queue<'_>> = queues.into_iter().map(Into::into).collect();
    let kernels: Vec<&Inner> = kernels.iter().map(|k| &*k.inner).collect();
    let tokens = vec![tokens; lists.len()];
    launch::launch_lists(&kernels, &queues, &tokens, &mut lists)
}
