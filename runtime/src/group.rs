//! Groups of ranks.

pub(crate) mod agreement;
pub(crate) mod control;
mod fork;
pub(crate) mod memory;
mod rank;
pub(crate) mod region;
pub(crate) mod rendezvous;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod transport;

use crate::backend::Backend;
#[cfg(feature = "cuda")]
use crate::cuda::CudaGroup;
use crate::error::{Error, ErrorKind};
use crate::host::HostGroup;
use crate::host::executor::Executor;
use crate::host::reference::Reference;
pub use rank::Rank;
use seamline_codegen::MAX_RANKS;
use state::State;
use std::sync::Arc;

/// Who runs a collective together. Makes [`Rank`]s; a group lives as long as one of them, or a kernel, does.
///
/// Exchange memory and machine code belong to the group and stay until it ends, whatever becomes of the kernels
/// they were made for; code stays for its [forks](Rank::fork) too. On a GPU a group ends by waiting for all that is
/// queued in its context: drop its last rank and kernel when every rank's part of the launches is queued, of this group
/// and of those that it shares the device with, and not during a capture.
#[derive(Debug)]
pub enum Group {}

impl Group {
    /// One rank on one GPU: collectives cost nothing.
    ///
    /// # Errors
    /// A GPU that is too old, or a driver that fails.
    #[cfg(feature = "cuda")]
    pub fn single(context: &Arc<cudarc::driver::CudaContext>) -> Result<Rank, Error> {
        Ok(Group::loopback(context, 1)?.remove(0))
    }

    /// `ranks` ranks on one GPU, which exchange through its memory: for development and tests. Each needs a
    /// stream of its own.
    ///
    /// Streams share the device's hardware queues, of which a process has 8 unless
    /// `CUDA_DEVICE_MAX_CONNECTIONS` says otherwise (up to 32) before its first CUDA call. Of two ranks on one
    /// queue, one may wait in vain for the other: set it when the process has more streams than that.
    ///
    /// # Errors
    /// A GPU that is too old, a driver that fails, or more ranks than a group can have.
    #[cfg(feature = "cuda")]
    pub fn loopback(context: &Arc<cudarc::driver::CudaContext>, ranks: u32) -> Result<Vec<Rank>, Error> {
        size(ranks)?;
        make(Box::new(CudaGroup::new(context, ranks)?), ranks)
    }

    /// `ranks` ranks that the reference interpreter runs, bit for bit as the contract says.
    ///
    /// # Errors
    /// More ranks than a group can have.
    pub fn reference(ranks: u32) -> Result<Vec<Rank>, Error> {
        Group::with_executor(Arc::new(Reference), ranks)
    }

    /// `ranks` ranks that `executor` runs.
    ///
    /// # Errors
    /// More ranks than a group can have.
    pub fn with_executor(executor: Arc<dyn Executor>, ranks: u32) -> Result<Vec<Rank>, Error> {
        size(ranks)?;
        make(Box::new(HostGroup::new(executor)), ranks)
    }
}

/// Whether a group can have so many ranks: asked before anything is made for each.
fn size(ranks: u32) -> Result<(), ErrorKind> {
    match (1..=MAX_RANKS).contains(&ranks) {
        true => Ok(()),
        false => Err(ErrorKind::GroupSize { got: ranks, max: MAX_RANKS }),
    }
}

fn make(backend: Box<dyn Backend>, ranks: u32) -> Result<Vec<Rank>, Error> {
    let group = State::new(backend, ranks, Arc::default())?;
    Ok((0..ranks).map(|index| Rank { group: Arc::clone(&group), index }).collect())
}

/// Whether `ranks` are all ranks of one group, in order.
pub(crate) fn whole_group<'a>(
    what: (&'static str, &'static str),
    ranks: impl ExactSizeIterator<Item = &'a Rank> + Clone,
) -> Result<(), Error> {
    let Some(first) = ranks.clone().next() else {
        return Err(ErrorKind::Count { what: what.1, expected: 1, got: 0 }.into());
    };
    if ranks.len() != first.group_size() as usize {
        return Err(ErrorKind::Count {
            what: what.1,
            expected: first.group_size() as usize,
            got: ranks.len(),
        }
        .into());
    }
    for (at, rank) in ranks.enumerate() {
        let same = Arc::ptr_eq(&rank.group, &first.group);
        if !same || rank.index as usize != at {
            let got_group = if same { "the same group" } else { "another group" };
            return Err(ErrorKind::OtherGroup { what: what.0, at, got_rank: rank.index, got_group }.into());
        }
    }
    Ok(())
}

/// Makes a group usable again after a [`Fault`](crate::Fault), as if it were new. `ranks` are all its ranks, in order. Its forks, and
/// the group that it is a fork of, are as they were.
///
/// Waits until the device has ended all that is queued, by whichever group.
///
/// # Errors
/// Not all ranks of one group, or a driver that fails.
pub fn reset(ranks: &[Rank]) -> Result<(), Error> {
    whole_group(("rank", "ranks"), ranks.iter())?;
    ranks[0].group.reset()
}
