//! What every thread of a run shares: the clock, and chance.

use crate::delivery::Delivery;
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
    /// Stores that are under way, in a random order.
    pub delivery: Option<Delivery>,
}

/// A random order interleaves one access to exchange memory in so many.
const INTERLEAVE_ONE_IN: usize = 16;

impl World {
    pub fn new(order: Order) -> World {
        let (rng, delivery) = match order {
            // Streams of their own, apart from the scheduler's.
            Order::Random(seed) => {
                (Some(RefCell::new(Rng(!seed))), Some(Delivery::new(seed.rotate_left(32))))
            }
            _ => (None, None),
        };
        // A clock that begins at 0 would hide kernels that take 0 for "not read yet" and are wrong about it.
        World { clock: Cell::new(1_000_000), reads: Cell::new(0), rng, delivery }
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
}
