//! From a bundle to the executor.

use crate::args::ArgList;
use crate::args::check;
use crate::error::{Error, ErrorKind};
use crate::group::whole_group;
use crate::kernel::{Inner, Kernel, Runner};
use crate::pattern::{Bundle, Pattern};
use crate::plan::variant::describe;
use crate::queue::Queue;

/// One rank's launch.
pub(crate) fn launch(
    kernel: &Inner,
    queue: Queue<'_>,
    tokens: usize,
    args: &mut ArgList<'_>,
) -> Result<(), Error> {
    let result = match &kernel.runner {
        Runner::Host(host) => crate::host::launch::launch(kernel, &**host, queue, tokens, args),
        #[cfg(feature = "cuda")]
        Runner::Cuda(cuda) => crate::cuda::launch::launch(kernel, cuda, queue, tokens, args),
    };
    result.map_err(|e| e.of(&kernel.plan.graph.name, Some(kernel.rank.index)))
}

/// Checks all bundles, then queues one launch on every rank of a group.
///
/// `kernels` and `args` are one per rank, in rank order. So are `queues`; on a host executor a single
/// [`Queue::host`] will do for all.
///
/// # Errors
/// See [`ErrorKind`]. Nothing was queued then, on any rank, but see [`Error`] for a driver that fails.
pub fn launch_all<'a, 'q, P: Pattern>(
    kernels: &[Kernel<P>],
    queues: impl IntoIterator<Item = impl Into<Queue<'q>>>,
    args: impl IntoIterator<Item = P::Args<'a>>,
) -> Result<(), Error> {
    let mut tokens = Vec::with_capacity(kernels.len());
    let mut lists = Vec::with_capacity(kernels.len());
    for bundle in args {
        tokens.push(bundle.tokens());
        let mut list = ArgList::new();
        bundle.collect(&mut list);
        lists.push(list);
    }
    let queues: Vec<Queue<'_>> = queues.into_iter().map(Into::into).collect();
    let kernels: Vec<&Inner> = kernels.iter().map(|k| &*k.inner).collect();
    launch_lists(&kernels, &queues, &tokens, &mut lists)
}

/// One rank's list of arguments each.
pub(crate) fn launch_lists(
    kernels: &[&Inner],
    queues: &[Queue<'_>],
    tokens: &[usize],
    args: &mut [ArgList<'_>],
) -> Result<(), Error> {
    let pattern = kernels.first().map(|k| &k.plan.graph.name);
    all(kernels, queues, tokens, args).map_err(|e| match pattern {
        Some(pattern) => e.of(pattern, None),
        None => e,
    })
}

fn all(
    kernels: &[&Inner],
    queues: &[Queue<'_>],
    tokens: &[usize],
    args: &mut [ArgList<'_>],
) -> Result<(), Error> {
    whole_group(("kernel", "kernels"), kernels.iter().map(|k| &k.rank))?;
    let expected = kernels.len();
    if args.len() != expected {
        return Err(ErrorKind::Count { what: "bundles", expected, got: args.len() }.into());
    }
    for (at, kernel) in kernels.iter().enumerate() {
        if let Some((what, expected, got)) = kernels[0].plan.agreement.difference(&kernel.plan.agreement) {
            return Err(ErrorKind::OtherKernel { at, what, expected, got }.into());
        }
        if tokens[at] != tokens[0] {
            return Err(
                ErrorKind::TokensDiffer { rank: at as u32, expected: tokens[0], got: tokens[at] }.into()
            );
        }
    }
    match &kernels[0].runner {
        Runner::Host(host) => crate::host::launch::launch_all(kernels, &**host, queues, tokens[0], args),
        #[cfg(feature = "cuda")]
        Runner::Cuda(_) => crate::cuda::launch::launch_all(kernels, queues, tokens[0], args),
    }
}

/// What needs no address and no queue; answers the variant's index.
#[inline]
pub(crate) fn admit(kernel: &Inner, tokens: usize, args: &ArgList<'_>) -> Result<usize, ErrorKind> {
    let plan = &kernel.plan;
    if tokens > plan.max_tokens {
        return Err(ErrorKind::TooManyTokens { max_tokens: plan.max_tokens, got: tokens });
    }
    let present = check::structure(&plan.arguments, args, tokens)?;
    let found = plan.variants.iter().position(|v| v.present() == present);
    let variant = found.ok_or_else(|| ErrorKind::Variant {
        got: describe(plan.graph, present),
        prepared: plan.variants.iter().map(|v| v.describe(plan.graph)).collect::<Vec<_>>().join(", or "),
    })?;
    match kernel.rank.control().fault() {
        Some(fault) => Err(ErrorKind::Fault(fault)),
        None => Ok(variant),
    }
}

/// The kernels of a launch: each one's first token and how many it has.
#[inline]
pub(crate) fn pieces(kernel: &Inner, tokens: usize) -> impl Iterator<Item = (u64, u64)> + use<> {
    let (all, most) = (tokens as u64, kernel.plan.tokens_per_launch);
    let mut first = 0;
    std::iter::from_fn(move || {
        let tokens = most.min(all - first);
        let piece = (first, tokens);
        first += tokens;
        (tokens > 0).then_some(piece)
    })
}
