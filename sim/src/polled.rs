//! Words of exchange memory, and what a thread that polls them remembers.

use std::cell::Cell;

/// A word of exchange memory that nobody has written yet.
pub(crate) const EMPTY: u32 = u32::MAX;

pub(crate) fn empty_words(words: [u32; 4]) -> usize {
    words.into_iter().filter(|&w| w == EMPTY).count()
}

/// The four words at `address`, as another thread may be writing them.
///
/// # Safety
/// 16 readable bytes are there, aligned to 4.
pub(crate) unsafe fn read(address: u64) -> [u32; 4] {
    let at = address as *const u32;
    // SAFETY: the caller's.
    std::array::from_fn(|i| unsafe { at.add(i).read_volatile() })
}

/// Where a thread has found empty words. The address of four words is a multiple of 16; its low bits count the empty ones.
#[derive(Default)]
pub(crate) struct Polled {
    places: [Cell<u64>; Polled::CAPACITY],
    next: Cell<usize>,
}

impl Polled {
    /// More than one round of polls of eight ranks' rows in f32.
    const CAPACITY: usize = 20;

    /// Notes that `empty` words at `address` are empty; answers whether that was known.
    pub fn note(&self, address: u64, empty: usize) -> bool {
        let place = address | empty as u64;
        if self.places.iter().any(|p| p.get() == place) {
            return true;
        }
        let next = self.next.get();
        self.places[next].set(place);
        self.next.set((next + 1) % Polled::CAPACITY);
        false
    }

    pub fn clear(&self) {
        self.places.iter().for_each(|p| p.set(0));
        self.next.set(0);
    }

    /// The address that was noted first since the last `clear`, or one of the others if they are many.
    pub fn first(&self) -> u64 {
        self.places[0].get() & !15
    }

    /// Whether memory is no longer as it was noted.
    pub fn changed(&self) -> bool {
        let noted = self.places.iter().map(Cell::get).take_while(|&p| p != 0);
        // SAFETY: the thread was allowed to read there, and a launch's memory outlives the run.
        noted.into_iter().any(|p| empty_words(unsafe { read(p & !15) }) as u64 != p & 15)
    }
}
