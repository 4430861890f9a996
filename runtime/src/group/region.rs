//! Exchange memory: three generations of slots per rank, and the slots' epochs.
//!
//! What they hold is the protocol's state from launch to launch (see `exchange.cuh`), so a region is made
//! once per group and shared by all its kernels that agree in layout. It is changed by kernels alone, and by
//! a collective reset.

use crate::error::Error;
use crate::group::memory::{Mapping, Own};
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

/// One rank's part.
#[derive(Debug)]
pub(crate) struct RankRegion {
    pub(crate) slots: Own,
    pub(crate) epochs: Own,
    /// By rank: that rank's slots, as this rank's kernels reach them. Its own are among them.
    pub(crate) reached: Vec<Mapping>,
}

impl Region {
    /// Allocates with `allocate(rank, words, fill)`, and lets every rank reach every rank's slots with
    /// `map(owner, user, slots)`.
    pub(crate) fn new(
        program: &Program,
        key: &RegionKey,
        allocate: impl Fn(u32, u64, u32) -> Result<Own, Error>,
        map: impl Fn(u32, u32, &Own) -> Result<Mapping, Error>,
    ) -> Result<Region, Error> {
        let layout = key.schedule.layout(program);
        let rank = |rank| {
            Ok(RankRegion {
                slots: allocate(rank, layout.bytes(key.slots) / 4, EMPTY_WORD)?,
                epochs: allocate(rank, key.slots, 0)?,
                reached: Vec::new(),
            })
        };
        let mut ranks = (0..program.dims.ranks).map(rank).collect::<Result<Vec<_>, Error>>()?;
        for user in 0..ranks.len() {
            let reach = |(owner, rank): (u32, &RankRegion)| map(owner, user as u32, &rank.slots);
            ranks[user].reached = (0..).zip(&ranks).map(reach).collect::<Result<_, Error>>()?;
        }
        Ok(Region { layout, slots: key.slots, ranks })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::memory::HostWords;
    use crate::plan::variant::tests::program;
    use std::cell::RefCell;

    const KEY: RegionKey = RegionKey { schedule: Schedule::OneShot, hidden: 40, wire: DType::Bf16, slots: 2 };

    fn own(words: u64, fill: u32) -> Result<Own, Error> {
        Ok(Own::new(HostWords::new(words, fill)?))
    }

    #[test]
    fn every_rank_reaches_every_ranks_slots_and_nothing_else_of_theirs() {
        let pairs = RefCell::new(Vec::new());
        let map = |owner, user, slots: &Own| {
            pairs.borrow_mut().push((user, owner));
            Ok(Mapping::in_place(slots))
        };
        let region =
            Region::new(&program(40, 3, false), &KEY, |_, words, fill| own(words, fill), map).unwrap();
        let all: Vec<_> = (0..3).flat_map(|user| (0..3).map(move |owner| (user, owner))).collect();
        assert_eq!(*pairs.borrow(), all);
        let slots: Vec<_> = region.ranks.iter().map(|r| (r.slots.address(), r.slots.bytes())).collect();
        for rank in &region.ranks {
            let reached: Vec<_> = rank.reached.iter().map(|m| (m.address(), m.bytes())).collect();
            assert_eq!(reached, slots);
        }
    }

    #[test]
    fn a_rank_that_cannot_be_reached_fails_the_region() {
        let map = |owner, user, slots: &Own| match (owner, user) {
            (2, 1) => Err(crate::ErrorKind::GroupSize { got: 2, max: 1 }.into()),
            _ => Ok(Mapping::in_place(slots)),
        };
        let error = Region::new(&program(40, 3, false), &KEY, |_, words, fill| own(words, fill), map);
        assert_eq!(*error.unwrap_err().kind(), crate::ErrorKind::GroupSize { got: 2, max: 1 });
    }

    #[test]
    fn a_reset_empties_slots_and_epochs() {
        let map = |_, _, slots: &Own| Ok(Mapping::in_place(slots));
        let region =
            Region::new(&program(40, 2, false), &KEY, |_, words, fill| own(words, fill), map).unwrap();
        for own in [&region.ranks[1].slots, &region.ranks[1].epochs] {
            own.fill(5).unwrap();
        }
        region.reset().unwrap();
        let words = |own: &Own| own.read(own.bytes() as usize / 4 - 1).unwrap();
        assert_eq!((words(&region.ranks[1].slots), words(&region.ranks[1].epochs)), (EMPTY_WORD, 0));
    }
}
