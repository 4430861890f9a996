//! What a rank's kernels have noticed.

use std::fmt;

/// A poll that ended in vain: who waited for whom, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Who waited.
    pub rank: u32,
    /// Who did not come.
    pub peer: u32,
    /// The exchange slot: the token's index in the launch.
    pub slot: u32,
    /// The slot's launch counter.
    pub epoch: u32,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { rank, peer, slot, epoch } = self;
        write!(f, "rank {rank} waited in vain for rank {peer} (slot {slot}, epoch {epoch})")
    }
}

/// What a rank's kernels have noticed since the group was made or reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The first fault. It stays, and fails every later launch, until the group is reset.
    pub fault: Option<Fault>,
    /// Row indices outside `[-1, P)`. They count as -1: padding rows of captured graphs carry garbage.
    pub out_of_range: u64,
}
