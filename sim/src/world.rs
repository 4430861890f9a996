//! What every thread of a run shares: the clock, and chance.

use crate::order::{Order, Rng};
use std::cell::{Cell, RefCell};

/// Shared between the machine and its fibers, which all run on one OS thread.
#[derive(Debug)]
pub(crate) struct World {
    clock: Cell<u64>,
    /// How often the clock has been read.
    reads: Cell<u64>,
    /// Chance, in a random order.
    rng: Option<RefCell<Rng>>,
}

/// A random order interleaves one access to exchange memory in so many.
const INTERLEAVE_ONE_IN: usize = 16;

impl World {
    pub fn new(order: Order) -> World {
        let rng = match order {
            // Not the scheduler's own stream.
            Order::Random(seed) => Some(RefCell::new(Rng(!seed))),
            _ => None,
        };
        // A clock that begins at 0 would hide kernels that take 0 for "not read yet" and are wrong about it.
        World { clock: Cell::new(1_000_000), reads: Cell::new(0), rng }
    }

    pub fn clock(&self) -> u64 {
        self.clock.get()
    }

    pub fn set_clock(&self, ns: u64) {
        self.clock.set(ns);
    }

    pub fn read_clock(&self) -> u64 {
        self.reads.set(self.reads.get() + 1);
        self.clock.get()
    }

    pub fn clock_reads(&self) -> u64 {
        self.reads.get()
    }

    /// Whether others run before this access.
    pub fn interleaves(&self) -> bool {
        self.rng.as_ref().is_some_and(|rng| rng.borrow_mut().one_in(INTERLEAVE_ONE_IN))
    }

    /// The word of a vector that is written first.
    pub fn first_word(&self) -> usize {
        self.rng.as_ref().map_or(0, |rng| rng.borrow_mut().below(4))
    }
}
