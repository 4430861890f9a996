//! What `#[fused_pattern]` generates, as traits.

use crate::args::ArgList;
use crate::error::Error;
use crate::group::Rank;
use crate::kernel::Kernel;
use crate::plan::options::Prepare;
use crate::prepare;
use seamline_codegen::Graph;

/// What `#[fused_pattern]` implements for the type that it generates, named as its fn, in CamelCase.
pub trait Definition: 'static {
    /// The fn's signature and body.
    const GRAPH: &'static Graph;
    /// Every argument of one launch.
    type Args<'a>: Bundle<'a>;
}

/// A fused pattern: every [`Definition`] is one, and nothing else, so that kernels are prepared as this says.
pub trait Pattern: Definition {
    /// Does all that is slow, so that launches are not: compiles, loads, allocates exchange memory.
    ///
    /// In a group it is collective: every rank calls it, from a thread of its own, with the same options, and
    /// it returns when all have. If one rank fails, all return its error. From one thread use
    /// [`prepare_all`](Pattern::prepare_all).
    ///
    /// # What it costs
    /// On a GPU NVRTC compiles a kernel for every variant and every geometry that up to `max_tokens` tokens can need, on all
    /// cores of the host: some 0.1 to 0.3 s each. Exchange memory is [`Kernel::exchange_bytes`] bytes per rank. So prepare a seam once, and
    /// let all layers share the kernel, which is cheap to clone. To load code may take until the device is idle: prepare
    /// before any rank launches.
    ///
    /// # Errors
    /// See [`ErrorKind`](crate::ErrorKind). A dim that neither the attribute nor `options` give, or both differently, is one.
    fn prepare(rank: &Rank, options: &Prepare) -> Result<Kernel<Self>, Error>
    where
        Self: Sized,
    {
        Ok(Kernel::new(prepare::prepare(Self::GRAPH, rank, options)?))
    }

    /// [`prepare`](Pattern::prepare) for all ranks of a group, from one thread. Answers the kernels in rank
    /// order.
    ///
    /// # Errors
    /// See [`ErrorKind`](crate::ErrorKind).
    fn prepare_all(ranks: &[Rank], options: &Prepare) -> Result<Vec<Kernel<Self>>, Error>
    where
        Self: Sized,
    {
        Ok(prepare::prepare_all(Self::GRAPH, ranks, options)?.into_iter().map(Kernel::new).collect())
    }
}

impl<P: Definition> Pattern for P {}

/// Every argument of one launch, typed by role; generated beside its [`Definition`].
pub trait Bundle<'a>: Sized {
    /// T, the number of tokens of this launch.
    fn tokens(&self) -> usize;

    /// Hands over the arguments: one per parameter in the order of the graph (an in-place parameter as
    /// [`Arg::InPlace`](crate::args::Arg::InPlace)), then one per output that is not in place.
    fn collect(self, into: &mut ArgList<'a>);
}
