//! Races on shared memory: two threads touch a word, one writes, and no barrier lies between.
//!
//! A barrier is counted by each thread that passes it, so an earlier touch is ordered before a later one if the later thread
//! has passed a barrier that the earlier one reached after its touch: of the block, for threads of one block, or of the
//! cluster, where only an arrival that releases counts. Mbarriers order more: a store that one counts brings along what its
//! thread knows ([`Known`]), and who has waited for the phase knows it too. (Another order that leads over a third thread is not seen. Kernels whose
//! barriers are uniform have none that a direct one does not give.)

use crate::thread::Place;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// Barriers that a thread has passed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    /// Of its block.
    pub block: u32,
    /// Of the cluster: arrivals that release, and waits for such.
    pub released: u32,
    pub acquired: u32,
    /// Of the cluster, whether or not they release.
    pub arrived: u32,
    pub waited: u32,
    /// Shuffles, at which a warp's lanes meet.
    pub shuffles: u32,
}

/// By warp of the cluster: what is before this moment of it has happened.
///
/// Moments are counted in shuffles, since the lanes of a warp touch memory each on its own, and one of them sends for all. So
/// what a thread has touched since its warp's last shuffle is not yet part of what it sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known(Vec<u32>);

const NOTHING: &Known = &Known(Vec::new());

impl Known {
    pub fn merge(&mut self, other: &Known) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own = (*own).max(*other));
    }

    /// What the thread of a counted store knows with it.
    pub fn with(mut self, store: &Touch) -> Known {
        let warp = store.warp as usize;
        self.0.resize(self.0.len().max(warp + 1), 0);
        self.0[warp] = self.0[warp].max(store.moment() + 1);
        self
    }

    fn covers(&self, touch: &Touch) -> bool {
        self.0.get(touch.warp as usize).is_some_and(|known| touch.moment() < *known)
    }
}

/// Who touched a word, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    /// The thread, counted through the cluster, and its block in the cluster.
    pub thread: u32,
    pub block: u32,
    /// Its warp, counted through the cluster.
    pub warp: u32,
    pub passed: Passed,
    /// A store that an mbarrier counts.
    pub counted: bool,
    pub place: Place,
}

impl Touch {
    fn precedes(&self, later: &Touch, known: &Known) -> bool {
        self.thread == later.thread
            || self.block == later.block && self.passed.block < later.passed.block
            || self.passed.released < later.passed.acquired
            || known.covers(self)
    }

    /// Between two shuffles of its warp: counted stores, then all else, so that a store can be known without the other lanes'
    /// touches.
    fn moment(&self) -> u32 {
        2 * self.passed.shuffles + u32::from(!self.counted)
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
    /// What the block's threads know, by their index in the cluster.
    known: RefCell<HashMap<u32, Known>>,
}

impl Shadow {
    /// The shared variables end `bytes` bytes behind `start`.
    pub fn cover(&self, start: u64, bytes: u64) {
        self.start.set(start);
        let mut words = self.words.borrow_mut();
        let len = (bytes.div_ceil(4) as usize).max(words.len());
        words.resize(len, Word::default());
    }

    /// What a thread of the block knows.
    pub fn known(&self, thread: u32) -> Known {
        self.known.borrow().get(&thread).cloned().unwrap_or_default()
    }

    /// A thread of the block has learned more.
    pub fn learn(&self, thread: u32, more: &Known) {
        self.known.borrow_mut().entry(thread).or_default().merge(more);
    }

    pub fn read(&self, address: u64, touch: Touch) -> Result<(), Wrong> {
        let known = self.known.borrow();
        let known = known.get(&touch.thread).unwrap_or(NOTHING);
        self.touch(address, |word| {
            let write = word.write.ok_or(Wrong::Unwritten)?;
            if !write.precedes(&touch, known) {
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
        self.write_knowing(address, touch, self.known.borrow().get(&touch.thread).unwrap_or(NOTHING))
    }

    /// A write by a thread of any block, which knows `known`.
    pub fn write_knowing(&self, address: u64, touch: Touch, known: &Known) -> Result<(), Wrong> {
        self.touch(address, |word| {
            let earlier = word.write.map(|w| (w, true)).into_iter();
            let earlier = earlier.chain(word.reads.into_iter().flatten().map(|r| (r, false)));
            for (earlier, wrote) in earlier {
                if !earlier.precedes(&touch, known) {
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
        let passed = Passed { block: blocks, released, acquired, ..Passed::default() };
        let place = Place { file: std::ptr::null(), line: 0 };
        Touch { thread, block, warp: thread / 32, passed, counted: false, place }
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
    fn what_is_known_is_ordered_up_to_the_warps_last_shuffle() {
        let at = |thread, shuffles, counted| {
            let touch = touch(thread, thread / 64, (0, 0, 0));
            Touch { passed: Passed { shuffles, ..touch.passed }, counted, ..touch }
        };
        let shadow = shadow();
        // Lane 1 reads, then lane 0 of its warp sends.
        shadow.write(1000, at(1, 3, false)).unwrap();
        let sent = Known::default().with(&at(0, 3, true));
        assert!(shadow.write_knowing(1000, at(70, 0, true), &sent).is_err(), "no shuffle between");
        let sent = Known::default().with(&at(0, 4, true));
        shadow.write_knowing(1000, at(70, 0, true), &sent).unwrap();
        // What came is read by who has waited for it.
        assert!(shadow.read(1000, at(5, 9, false)).is_err());
        let mut known = Known::default();
        known.merge(&sent.with(&at(70, 0, true)));
        shadow.learn(5, &known);
        shadow.read(1000, at(5, 9, false)).unwrap();
        assert!(shadow.read(1000, at(6, 9, false)).is_err());
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
