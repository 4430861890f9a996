//! Kernels whose pattern is known at run time only: for bindings to other languages, tools and tests.
//!
//! What `#[fused_pattern]` types at compile time is checked at launch all the same. [`Kernel::arguments`] says what a kernel
//! takes, and [`Kernel::args`] takes it by name.
//!
//! ```
//! # use seamline_runtime::{Error, Kernel, Queue};
//! /// Scales rows by one weight per channel, whatever pattern that is.
//! fn scale<P>(kernel: &Kernel<P>, x: &[f32], weight: &[f32], out: &mut [f32]) -> Result<(), Error> {
//!     let mut args = kernel.args(x.len() / weight.len());
//!     args.input("x", x)?.input("weight", weight)?.output("out", out)?;
//!     kernel.erase().launch(Queue::host(), args)
//! }
//! ```

mod arguments;
mod named;

use crate::args::{Arg, ArgList};
use crate::error::Error;
use crate::group::Rank;
use crate::kernel::{Inner, Kernel};
use crate::pattern::Bundle;
use crate::plan::options::Prepare;
use crate::queue::Queue;
use crate::{launch, prepare};
pub use arguments::{Access, Argument, Dim};
pub use named::NamedArgs;
use seamline_codegen::Graph;

/// In place of a pattern's type.
#[derive(Clone, Copy, Debug)]
pub enum Erased {}

/// [`Pattern::prepare`](crate::Pattern::prepare) for `graph`.
///
/// # Errors
/// See [`ErrorKind`](crate::ErrorKind).
pub fn prepare(graph: &'static Graph, rank: &Rank, options: &Prepare) -> Result<Kernel<Erased>, Error> {
    Ok(Kernel::new(prepare::prepare(graph, rank, options)?))
}

/// [`Pattern::prepare_all`](crate::Pattern::prepare_all) for `graph`.
///
/// # Errors
/// See [`ErrorKind`](crate::ErrorKind).
pub fn prepare_all(
    graph: &'static Graph,
    ranks: &[Rank],
    options: &Prepare,
) -> Result<Vec<Kernel<Erased>>, Error> {
    Ok(prepare::prepare_all(graph, ranks, options)?.into_iter().map(Kernel::new).collect())
}

/// [`launch_all`](crate::launch_all) with any bundle per rank.
///
/// # Errors
/// See [`ErrorKind`](crate::ErrorKind). Nothing was queued then, but see [`Error`] for a driver that fails.
pub fn launch_all<'a, 'q, P>(
    kernels: &[Kernel<P>],
    queues: impl IntoIterator<Item = impl Into<Queue<'q>>>,
    args: impl IntoIterator<Item = impl Bundle<'a>>,
) -> Result<(), Error> {
    let queues: Vec<Queue<'_>> = queues.into_iter().map(Into::into).collect();
    let kernels: Vec<&Inner> = kernels.iter().map(|k| &*k.inner).collect();
    launch::launch_bundles(&kernels, &queues, args)
}

impl Kernel<Erased> {
    /// As a [typed kernel's](Kernel#method.launch), with any bundle: [`NamedArgs`], the pattern's own, or the tokens and a
    /// list.
    ///
    /// # Errors
    /// See [`ErrorKind`](crate::ErrorKind). Nothing was queued then, but see [`Error`] for a driver that fails.
    pub fn launch<'a, 'q>(&self, queue: impl Into<Queue<'q>>, args: impl Bundle<'a>) -> Result<(), Error> {
        launch::launch(&self.inner, queue.into(), args)
    }
}

impl<P> Kernel<P> {
    /// The same kernel, without its pattern's type.
    pub fn erase(&self) -> Kernel<Erased> {
        Kernel::new(std::sync::Arc::clone(&self.inner))
    }

    /// What a launch takes, in the order of the bundle.
    pub fn arguments(&self) -> Vec<Argument<'_>> {
        arguments::of(&self.inner.plan)
    }

    /// A bundle for `tokens` tokens, to be filled by name.
    pub fn args<'a>(&self, tokens: usize) -> NamedArgs<'_, 'a> {
        NamedArgs::new(&self.inner, tokens)
    }
}

/// The tokens, and the arguments in the order that [`Bundle::collect`] states.
impl<'a> Bundle<'a> for (usize, ArgList<'a>) {
    fn tokens(&self) -> usize {
        self.0
    }

    fn collect(self, into: &mut ArgList<'a>) {
        *into = self.1;
    }
}

impl<'a> Bundle<'a> for NamedArgs<'_, 'a> {
    fn tokens(&self) -> usize {
        self.tokens
    }

    fn collect(self, into: &mut ArgList<'a>) {
        into.extend(self.given.into_iter().map(|given| given.unwrap_or(Arg::Absent)));
    }
}
