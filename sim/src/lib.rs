//! The simulator of [seamline](https://docs.rs/seamline): runs generated CUDA on the CPU.
//!
//! The very source that a GPU would get is built with the system's C++ compiler over another device layer
//! ([`DEVICE_LAYER`]) and run with a fiber per CUDA thread: blocks, clusters with distributed shared memory, warps, barriers,
//! dependent launches and the exchange between ranks. One OS thread runs them all, in an [`Order`] that a run can repeat:
//! forward, reverse, or at random from a seed.
//!
//! # What it finds
//! It watches what a GPU lets pass, and names the kernel, the line of generated source, the rank, the block and the thread:
//!
//! | rule | what breaks it |
//! |---|---|
//! | memory | an access that no argument allows; a misaligned one; a constant load of what the launch writes |
//! | dependent launches | anything but constant weights before `grid_wait`; a block that never waits; a trigger before the wait |
//! | barriers | one that a thread passes by or that lies in divergent code; halves of the cluster's that do not alternate |
//! | shared memory | a race, an address that is none, a value that nobody wrote; a block of the cluster that has not begun or has ended |
//! | mbarriers | one that is used before it is made for the user; an arrival or bytes of another phase; a block that ends before they have come |
//! | exchange | a poll of a peer's memory; a push to another rank's row, over a row, or of a word that means empty |
//! | progress | a deadlock, told by who waits for what |
//!
//! Shared memory is watched where kernels reach it through `load_shared`, `store_shared` and `store_async`. Everything is a
//! [`Fault`], but the deadlock, which is a [`SimError`] of its own. Wrong results are for the caller to find, by comparison.
//!
//! # What chance does
//! In a random order ranks start late, a launch begins before its predecessor has ended (where that one lets it), threads
//! stop at accesses to exchange memory and some sleep until nobody else can run, and relaxed stores arrive late, apart and out
//! of order, at the latest when their launch ends. The seed decides it all: the same seed is the same run.
//!
//! # Time
//! Time is simulated and passes only while all wait. A poll for a rank that never comes expires at once.
//!
//! # What it is not
//! Ordinary global memory is as the program orders it, and nothing here tells how fast a kernel is. For Unix systems.

#[cfg(not(unix))]
compile_error!("seamline-sim runs on Unix systems: leave out the feature `sim`");

mod bits;
mod build;
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
mod load;
mod machine;
mod mbarrier;
mod order;
mod polled;
mod queues;
mod races;
mod shared;
mod source;
mod stack;
mod tell;
mod thread;
mod waiting;
mod world;

pub use error::{At, Fault, SimError, Waiting};
pub use executor::{Simulated, Simulator};
pub use launch::{Launch, Range};
pub use library::{DEVICE_LAYER, Library, Report, Source, run};
pub use order::{Order, ParseOrderError};
pub use seamline_runtime::executor::AccessRole;
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
