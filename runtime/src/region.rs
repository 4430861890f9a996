//! Exchange memory: three generations of slots per rank, and the slots' epochs.
//!
//! What they hold is the protocol's state from launch to launch (see `exchange.cuh`), so a region is made
//! once per group and shared by all its kernels that agree in layout. It is changed by kernels alone, and by
//! a collective reset.

use crate::error::Error;
use crate::memory::Memory;
use seamline_codegen::abi::EMPTY_WORD;
use seamline_codegen::schedule::{Layout, Schedule};
use seamline_codegen::{DType, Dims, Program};

/// What decides a region's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RegionKey {
    pub(crate) schedule: Schedule,
    pub(crate) hidden: u32,
    pub(crate) wire: DType,
    /// Tokens that it holds.
    pub(crate) slots: u64,
}

impl RegionKey {
    /// The regions of a kernel that `schedules` run, one each, with so many slots.
    pub(crate) fn of_schedules(
        schedules: impl Iterator<Item = Schedule>,
        dims: &Dims,
        slots: u64,
    ) -> Vec<RegionKey> {
        let mut keys = Vec::new();
        for schedule in schedules {
            let key = RegionKey { schedule, hidden: dims.hidden, wire: dims.wire, slots };
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }
}

/// The exchange memory of all local ranks.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) layout: Layout,
    /// Tokens that it holds.
    pub(crate) slots: u64,
    /// By rank.
    pub(crate) ranks: Vec<RankRegion>,
}

/// One rank's.
#[derive(Debug)]
pub(crate) struct RankRegion {
    pub(crate) slots: Memory,
    pub(crate) epochs: Memory,
}

impl Region {
    /// Allocates with `allocate(rank, words, fill)`.
    pub(crate) fn new(
        program: &Program,
        key: &RegionKey,
        allocate: impl Fn(u32, u64, u32) -> Result<Memory, Error>,
    ) -> Result<Region, Error> {
        let layout = key.schedule.layout(program);
        let rank = |rank| {
            Ok(RankRegion {
                slots: allocate(rank, layout.bytes(key.slots) / 4, EMPTY_WORD)?,
                epochs: allocate(rank, key.slots, 0)?,
            })
        };
        let ranks = (0..program.dims.ranks).map(rank).collect::<Result<_, Error>>()?;
        Ok(Region { ranks, layout, slots: key.slots })
    }

    /// As if no launch had been.
    pub(crate) fn reset(&self) -> Result<(), Error> {
        for rank in &self.ranks {
            rank.slots.fill(EMPTY_WORD)?;
            rank.epochs.fill(0)?;
        }
        Ok(())
    }

    /// Bytes that one rank holds.
    pub(crate) fn bytes_per_rank(&self) -> u64 {
        self.ranks.first().map_or(0, |r| r.slots.bytes() + r.epochs.bytes())
    }
}
