//! From bundles to the backend.

use crate::args::ArgList;
use crate::error::{Error, ErrorKind};
use crate::group::whole_group;
use crate::kernel::{Inner, Kernel};
use crate::pattern::{Bundle, Pattern};
use crate::queue::Queue;

/// One rank's launch.
#[inline]
pub(crate) fn launch<'a>(kernel: &Inner, queue: Queue<'_>, args: impl Bundle<'a>) -> Result<(), Error> {
    let tokens = args.tokens();
    let mut list = ArgList::new();
    args.collect(&mut list);
    let admitted = kernel.admit(tokens, &mut list).map_err(Error::from);
    let result = admitted.and_then(|launch| kernel.code.launch(queue, launch));
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
    crate::erased::launch_all(kernels, queues, args)
}

/// One bundle per rank.
pub(crate) fn launch_bundles<'a>(
    kernels: &[&Inner],
    queues: &[Queue<'_>],
    args: impl IntoIterator<Item = impl Bundle<'a>>,
) -> Result<(), Error> {
    let mut lists = Vec::with_capacity(kernels.len());
    for bundle in args {
        let tokens = bundle.tokens();
        let mut list = ArgList::new();
        bundle.collect(&mut list);
        lists.push((tokens, list));
    }
    let pattern = kernels.first().map(|k| &k.plan.graph.name);
    all(kernels, queues, &mut lists).map_err(|e| match pattern {
        Some(pattern) => e.of(pattern, None),
        None => e,
    })
}

fn all(kernels: &[&Inner], queues: &[Queue<'_>], args: &mut [(usize, ArgList<'_>)]) -> Result<(), Error> {
    whole_group(("kernel", "kernels"), kernels.iter().map(|k| &k.rank))?;
    let expected = kernels.len();
    if args.len() != expected {
        return Err(ErrorKind::Count { what: "bundles", expected, got: args.len() }.into());
    }
    for (at, kernel) in kernels.iter().enumerate() {
        if let Some((what, expected, got)) = kernels[0].plan.agreement.difference(&kernel.plan.agreement) {
            return Err(ErrorKind::OtherKernel { at, what, expected, got }.into());
        }
        let (expected, got) = (args[0].0, args[at].0);
        if got != expected {
            return Err(ErrorKind::TokensDiffer { rank: at as u32, expected, got }.into());
        }
    }
    let admitted = kernels.iter().zip(args).map(|(kernel, (tokens, args))| {
        kernel.admit(*tokens, args).map_err(|e| Error::from(e).on(kernel.rank.index))
    });
    let launches = admitted.collect::<Result<Vec<_>, _>>()?;
    for launch in &launches {
        let first = launches[0].variant_index;
        kernels[0].plan.presence_fits(first, launch.rank, launch.variant_index)?;
    }
    // The group's, as all agree.
    kernels[0].code.launch_all(queues, launches)
}
