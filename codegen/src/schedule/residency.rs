//! What must be resident together: blocks that poll, and all that they poll for.

use super::{Geometry, Rows};

/// How many launches must find room on a device at once: one of each rank there, of the group and of each of its
/// `forks`.
///
/// A successor that starts early starts when all of its predecessor runs; but it may take the room of another's
/// predecessor.
pub const fn launches_at_once(ranks_per_device: u32, forks: u32, early_trigger: bool) -> u32 {
    match (ranks_per_device.saturating_mul(forks.saturating_add(1)), early_trigger) {
        (launches, true) if launches > 1 => launches.saturating_mul(2),
        (launches, _) => launches,
    }
}

impl Rows<'_> {
    /// Clusters of `geometry` that one launch has room for beside all others. `__launch_bounds__` makes the compiler
    /// keep `blocks_per_sm`.
    ///
    /// A fork's launches may be of any other kernel, and how many CTAs of two kernels fit beside each other depends on
    /// where each has gone. So all of them together are one CTA per SM at most: as long as one is not placed, an SM is
    /// idle, and whatever it is, it fits there. A cluster wants its SMs near each other, and finds them in what is left
    /// over.
    pub(super) fn room(&self, geometry: &Geometry) -> u64 {
        let share = u64::from(launches_at_once(self.ranks_per_device, self.forks, self.early_trigger));
        // A cluster lies within a GPC, whose SMs come in pairs, unless a fork's CTAs have broken them up; larger clusters
        // may leave some of them over.
        let (per_sm, tiles) = if self.forks == 0 { (geometry.blocks_per_sm, 2) } else { (1, 1) };
        let ctas = u64::from(self.device.sms) * u64::from(per_sm);
        let usable = if geometry.ctas > tiles { ctas - ctas / 8 } else { ctas };
        usable / u64::from(geometry.ctas) / share.max(1)
    }

    /// Clusters of `geometry` that one launch may have. One at least: the runtime refuses what has no room.
    pub(super) fn resident(&self, geometry: &Geometry) -> u64 {
        self.room(geometry).max(1)
    }
}
