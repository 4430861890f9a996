//! What `#[fused_pattern]` generates, as traits.

use crate::args::ArgList;
use seamline_codegen::Graph;

/// A fused pattern: the type that `#[fused_pattern]` generates, named as its fn, in CamelCase.
pub trait Pattern: 'static {
    /// The fn's signature and body.
    const GRAPH: &'static Graph;
    /// Every argument of one launch.
    type Args<'a>: Bundle<'a>;
}

/// Every argument of one launch, typed by role; generated beside its [`Pattern`].
pub trait Bundle<'a>: Sized {
    /// T, the number of tokens of this launch.
    fn tokens(&self) -> usize;

    /// Hands over the arguments: one per parameter in the order of the graph (an in-place parameter as
    /// [`Arg::InPlace`](crate::args::Arg::InPlace)), then one per output that is not in place.
    fn collect(self, into: &mut ArgList<'a>);
}
