//! Schedules: the ways to run a program, and the geometry of their launches. All of it is pure functions of program,
//! device, tokens, and what shares the device.
//!
//! A schedule is a file here and a `.cuh` of the templates; [`SCHEDULES`] lists them. What only one schedule knows (whom
//! it serves, its shape for some tokens, what its exchange memory holds, what it sends) is in its file, and whoever
//! needs it asks the list.

mod device;
mod layout;
mod local;
mod one_shot;
mod owner;
mod planner;
mod residency;
mod rows;

pub use device::DeviceModel;
pub use layout::{Layout, Outbox, Part};
pub use planner::Planner;
pub use residency::launches_at_once;
pub(crate) use rows::LANE;
pub use rows::Rows;

use crate::Program;
use std::fmt;

/// One way to run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Schedule {
    /// One rank: one pass over memory.
    Local,
    /// Each rank pushes its partial row to all, and polls its own memory: one hop, for few tokens.
    OneShot,
    /// A row's blocks of 256 channels are dealt over the ranks; each rank pushes its slices to their owners, who add them and
    /// publish the sums: two hops and fewer bytes, for more tokens on many ranks. The bits are those of `one_shot`.
    Owner,
}

/// What there is to know of a schedule.
pub struct ScheduleDef {
    /// The schedule.
    pub schedule: Schedule,
    /// Its name in commands, messages and entry points, and the function template of its `.cuh`.
    pub name: &'static str,
    /// Round trips between the ranks.
    pub hops: u32,
    /// Whether the template takes, as its last argument, that a cluster has several tokens.
    pub waves: bool,
    /// Registers of a thread that hold no rows, with one vector of channels.
    registers: u32,
    /// Why it cannot run a program.
    refusal: fn(&Program) -> Option<&'static str>,
    /// The shape of a launch of so many tokens.
    shape: fn(&Rows<'_>, u64) -> LaunchShape,
    /// The most tokens of a launch, whatever its exchange memory holds.
    most: fn(&Rows<'_>) -> u64,
    /// What its exchange memory holds.
    layout: fn(&Program) -> Layout,
    /// What a rank sends and receives for a token.
    traffic: fn(&Program, u32) -> Traffic,
}

/// All schedules, in the order of [`Schedule`]. Where nothing is said, the first that serves a program runs it.
pub static SCHEDULES: [&ScheduleDef; 3] = [&local::DEF, &one_shot::DEF, &owner::DEF];

impl Schedule {
    /// What there is to know of it.
    pub fn def(self) -> &'static ScheduleDef {
        SCHEDULES[self as usize]
    }

    /// Its name in commands, messages and entry points.
    pub fn name(self) -> &'static str {
        self.def().name
    }

    /// The schedule of that name.
    pub fn from_name(name: &str) -> Option<Schedule> {
        SCHEDULES.iter().find(|def| def.name == name).map(|def| def.schedule)
    }

    /// The one that runs `program` where nothing is said.
    pub fn of(program: &Program) -> Schedule {
        let first = SCHEDULES.iter().find(|def| (def.refusal)(program).is_none());
        first.map_or(Schedule::Local, |def| def.schedule)
    }

    /// Why it cannot run `program`, and what to do; `None` if it can.
    pub fn refusal(self, program: &Program) -> Option<&'static str> {
        (self.def().refusal)(program)
    }

    /// What a rank's exchange memory holds; of a schedule that exchanges nothing, nothing.
    pub fn layout(self, program: &Program) -> Layout {
        (self.def().layout)(program)
    }

    /// What `rank` sends to the others, and receives, for a token.
    pub fn traffic(self, program: &Program, rank: u32) -> Traffic {
        (self.def().traffic)(program, rank)
    }
}

impl fmt::Debug for ScheduleDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Bytes between a rank and all others, for a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Written to the others' memory.
    pub sent: u64,
    /// Written by the others to its own.
    pub received: u64,
}

/// How an entry deals rows to threads. Compile-time constants of the generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// The schedule.
    pub schedule: Schedule,
    /// CTAs of the cluster that shares a row.
    pub ctas: u32,
    /// Threads of a CTA.
    pub threads: u32,
    /// Lanes of 8 channels per thread.
    pub vectors: u32,
    /// Rows that finalize asks for at once.
    pub batch: u32,
    /// CTAs that should fit on one SM; bounds the registers.
    pub blocks_per_sm: u32,
    /// Whether outputs are stored past the cache.
    pub streaming: bool,
    /// Whether a cluster takes several tokens, sending all before it receives any.
    pub waves: bool,
}

/// How the tokens of one call are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// The geometry.
    pub geometry: Geometry,
    /// Clusters of the grid.
    pub clusters: u32,
}

/// The tokens that a geometry serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub from: u64,
    /// The most.
    pub up_to: u64,
    /// The geometry.
    pub geometry: Geometry,
}

/// Tokens that exchange memory holds by default. A longer launch runs as several kernels.
pub const EXCHANGE_TOKENS: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_the_order_of_the_enum_and_names_are_unique() {
        for (i, def) in SCHEDULES.iter().enumerate() {
            assert_eq!(def.schedule as usize, i, "{def:?}");
            assert_eq!(Schedule::from_name(def.name), Some(def.schedule));
        }
        assert_eq!(Schedule::from_name("one_shot"), Some(Schedule::OneShot));
        assert_eq!(Schedule::from_name("two_shot"), None);
    }
}
