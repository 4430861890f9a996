//! Races on shared memory: two threads touch a word, one writes, and no barrier lies between.
//!
//! A barrier is counted by each thread that passes it, so an earlier touch is ordered before a later one if the later thread
//! has passed a barrier that the earlier one reached after its touch: of the block, for threads of one block, or of the
//! cluster, where only an arrival that releases counts. (An order that leads over a third thread is not seen. Kernels whose
//! barriers are uniform have none that a direct one does not give.)

use crate::thread::Place;
use std::cell::{Cell, RefCell};

/// Barriers that a thread has passed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    /// Of its block.
    pub block: u32,
    /// Of the cluster: arrivals that release, and waits for such.
    pub released: u32,
    pub acquired: u32,
}

/// Who touched a word, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    /// The thread, counted through the cluster, and its block in the cluster.
    pub thread: u32,
    pub block: u32,
    pub passed: Passed,
    pub place: Place,
}

impl Touch {
    fn precedes(&self, later: &Touch) -> bool {
        self.thread == later.thread
            || self.block == later.block && self.passed.block < later.passed.block
            || self.passed.released < later.passed.acquired
    }
}

/// The last touches of a word. Of the reads, those of two threads: one of them is not the next writer's own.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    write: Option<Touch>,
    reads: [Option<Touch>; 2],
}

/// What is wrong with a touch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrong {
    /// Not a shared variable.
    Address,
    /// It reads what nobody has written.
    Unwritten,
    /// Nothing orders it after this touch, which `wrote` or read.
    Race { earlier: Touch, wrote: bool },
}

/// The touches of a block's shared memory.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    start: Cell<u64>,
    words: RefCell<Vec<Word>>,
}

impl Shadow {
    /// The shared variables end `bytes` bytes behind `start`.
    pub fn cover(&self, start: u64, bytes: u64) {
        self.start.set(start);
        let mut words = self.words.borrow_mut();
        let len = (bytes.div_ceil(4) as usize).max(words.len());
        words.resize(len, Word::default());
    }

    pub fn read(&self, address: u64, touch: Touch) -> Result<(), Wrong> {
        self.touch(address, |word| {
            let write = word.write.ok_or(Wrong::Unwritten)?;
            if !write.precedes(&touch) {
                return Err(Wrong::Race { earlier: write, wrote: true });
            }
            if word.reads[0].is_some_and(|r| r.thread != touch.thread) {
                word.reads[1] = word.reads[0];
            }
            word.reads[0] = Some(touch);
            Ok(())
        })
    }

    pub fn write(&self, address: u64, touch: Touch) -> Result<(), Wrong> {
        self.touch(address, |word| {
            let earlier = word.write.map(|w| (w, true)).into_iter();
            let earlier = earlier.chain(word.reads.into_iter().flatten().map(|r| (r, false)));
            for (earlier, wrote) in earlier {
                if !earlier.precedes(&touch) {
                    return Err(Wrong::Race { earlier, wrote });
                }
            }
            *word = Word { write: Some(touch), reads: [None; 2] };
            Ok(())
        })
    }

    fn touch(&self, address: u64, then: impl FnOnce(&mut Word) -> Result<(), Wrong>) -> Result<(), Wrong> {
        let offset =
            address.checked_sub(self.start.get()).filter(|o| o.is_multiple_of(4)).ok_or(Wrong::Address)?;
        let mut words = self.words.borrow_mut();
        then(words.get_mut(offset as usize / 4).ok_or(Wrong::Address)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(thread: u32, block: u32, passed: (u32, u32, u32)) -> Touch {
        let (blocks, released, acquired) = passed;
        let passed = Passed { block: blocks, released, acquired };
        Touch { thread, block, passed, place: Place { file: std::ptr::null(), line: 0 } }
    }

    fn shadow() -> Shadow {
        let shadow = Shadow::default();
        shadow.cover(1000, 8);
        shadow
    }

    #[test]
    fn a_barrier_orders_touches() {
        let shadow = shadow();
        shadow.write(1000, touch(0, 0, (0, 0, 0))).unwrap();
        assert!(matches!(shadow.read(1000, touch(1, 0, (0, 0, 0))), Err(Wrong::Race { wrote: true, .. })));
        shadow.read(1000, touch(1, 0, (1, 0, 0))).unwrap();
        shadow.read(1000, touch(0, 0, (1, 0, 0))).unwrap();
        // The last reader is the writer itself; the one before it is not.
        assert!(matches!(shadow.write(1000, touch(0, 0, (1, 0, 0))), Err(Wrong::Race { wrote: false, .. })));
        shadow.write(1000, touch(0, 0, (2, 0, 0))).unwrap();
    }

    #[test]
    fn a_blocks_barrier_does_not_order_a_cluster_and_a_relaxed_arrival_nothing() {
        let shadow = shadow();
        shadow.write(1004, touch(40, 1, (0, 0, 0))).unwrap();
        assert!(shadow.read(1004, touch(1, 0, (5, 0, 0))).is_err());
        // It has waited for the barrier at which the writer arrived before it wrote.
        shadow.write(1000, touch(40, 1, (0, 1, 0))).unwrap();
        assert!(shadow.read(1000, touch(1, 0, (0, 1, 1))).is_err());
        shadow.read(1000, touch(1, 0, (0, 2, 2))).unwrap();
    }

    #[test]
    fn what_is_no_variable_or_not_written_is_told() {
        let shadow = shadow();
        for address in [996, 1008, 1002] {
            assert!(matches!(shadow.write(address, touch(0, 0, (0, 0, 0))), Err(Wrong::Address)));
        }
        assert!(matches!(shadow.read(1000, touch(0, 0, (0, 0, 0))), Err(Wrong::Unwritten)));
    }
}
