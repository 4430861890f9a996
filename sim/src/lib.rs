//! The simulator of [seamline](https://docs.rs/seamline): runs generated CUDA on the CPU.
//!
//! The very source that a GPU would get is built with the system's C++ compiler over another device layer
//! ([`DEVICE_LAYER`]) and run with a fiber per CUDA thread: blocks, clusters with distributed shared memory, warps, barriers,
//! dependent launches and the exchange between ranks. One OS thread runs them all, in an [`Order`] that a run can repeat:
//! forward, reverse, or at random from a seed.
//!
//! It watches what a GPU lets pass: accesses that no argument allows, reads before `grid_wait`, barriers in divergent code,
//! rows pushed where they do not belong or over others; it names the line of generated source, rank, block and thread. Time is
//! simulated: a poll for a rank that never comes expires at once, and what can never go on is a deadlock, told thread by
//! thread.
//!
//! Not modelled: the memory order of ordinary global and shared memory, which here is the program's; and time.
//!
//! For Unix systems.

mod bits;
mod cache;
mod cluster;
mod compile;
mod delivery;
mod diagnosis;
mod error;
mod executor;
mod fiber;
mod float;
mod host;
mod launch;
mod library;
mod machine;
mod order;
mod polled;
mod queues;
mod races;
mod shared;
mod source;
mod thread;
mod waiting;
mod world;

pub use error::{At, Fault, SimError, Waiting};
pub use executor::{Simulated, Simulator};
pub use launch::{Launch, Range, Usage};
pub use library::{DEVICE_LAYER, Library, Report, Source, run};
pub use order::{Order, ParseOrderError};
use std::time::Duration;

/// How to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Who runs next.
    pub order: Order,
    /// Ranks whose launches begin late, by the device's clock: the others first do all they can.
    pub delays: Vec<(u32, Duration)>,
}

impl Options {
    /// Runs in `order`.
    pub fn new(order: Order) -> Options {
        Options { order, delays: Vec::new() }
    }

    /// Lets `rank` come late.
    #[must_use]
    pub fn delay(mut self, rank: u32, by: Duration) -> Options {
        self.delays.push((rank, by));
        self
    }
}
