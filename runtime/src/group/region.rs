//! Exchange memory: three generations of slots per rank, and the slots' epochs.
//!
//! What they hold is the protocol's state from launch to launch (see `exchange.cuh`), so a region is made
//! once per group and shared by all its kernels that agree in layout. It is changed by kernels alone, and by
//! a collective reset.

use crate::error::Error;
use crate::group::memory::Memory;
use seamline_codegen::abi::{EMPTY_WORD, GENERATIONS, generation_bytes, wire_row_bytes};
use seamline_codegen::schedule::Schedule;
use seamline_codegen::{DType, Program};

/// What decides a region's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RegionKey {
    pub(crate) schedule: Schedule,
    pub(crate) hidden: u32,
    pub(crate) wire: DType,
    /// Tokens that it holds.
    pub(crate) slots: u64,
}

/// The exchange memory of all local ranks.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) generation_bytes: u64,
    /// Bytes of one rank's row in a slot.
    pub(crate) row_bytes: u64,
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
        let generation_bytes = generation_bytes(program, key.slots);
        let rank = |rank| {
            Ok(RankRegion {
                slots: allocate(rank, GENERATIONS * generation_bytes / 4, EMPTY_WORD)?,
                epochs: allocate(rank, key.slots, 0)?,
            })
        };
        Ok(Region {
            generation_bytes,
            row_bytes: wire_row_bytes(program),
            ranks: (0..program.dims.ranks).map(rank).collect::<Result<_, Error>>()?,
        })
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
