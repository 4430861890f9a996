//! Exchange memory and the ranks, at one moment.

use std::hash::{Hash, Hasher};

use crate::case::{Case, MAX_SLOTS, MAX_THREADS, Shape};

/// What a word of a region holds: the launch that its data belong to, or [`EMPTY`].
pub type Word = u8;
pub const EMPTY: Word = u8::MAX;
/// What a launch that has failed would say.
pub const NAN: Word = u8::MAX - 1;

/// What no rank's row is of: the sums that owners publish, behind the rows of all ranks.
pub const SUM: u8 = u8::MAX;

/// One word of one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub region: u8,
    pub generation: u8,
    pub slot: u8,
    /// The rank whose row it is of, or [`SUM`].
    pub from: u8,
    pub lane: u8,
    pub word: u8,
}

/// A store that has been issued and not yet performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    pub at: Place,
    pub by: u8,
    pub word: Word,
}

impl Store {
    pub fn is_arm(self) -> bool {
        self.at.region == self.by
    }
}

/// As one number: the checker spends most of its time here.
impl Hash for Store {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Place { region, generation, slot, from, lane, word } = self.at;
        state.write_u64(u64::from_le_bytes([region, generation, slot, from, lane, word, self.by, self.word]));
    }
}

/// All regions, and the stores on their way. Stores land in any order, however late; only those of one
/// rank to one word keep theirs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Memory {
    words: Vec<Word>,
    in_flight: Vec<Store>,
}

impl Memory {
    pub fn new(case: &Case) -> Self {
        Self { words: vec![EMPTY; case.ranks as usize * Self::region(case)], in_flight: Vec::new() }
    }

    /// Words of a region.
    fn region(case: &Case) -> usize {
        3 * MAX_SLOTS * Self::rows(case) * case.lanes as usize * case.words as usize
    }

    /// Rows of a slot: one of every rank, and one of sums.
    fn rows(case: &Case) -> usize {
        case.ranks as usize + usize::from(case.shape == Shape::Owner)
    }

    fn index(case: &Case, at: Place) -> usize {
        let row = (at.region as usize * 3 + at.generation as usize) * MAX_SLOTS + at.slot as usize;
        let vector = (row * Self::rows(case) + at.from.min(case.ranks) as usize) * case.lanes as usize
            + at.lane as usize;
        vector * case.words as usize + at.word as usize
    }

    /// What `reader` finds: what it has stored there itself, even if that is still on its way.
    pub fn load(&self, case: &Case, at: Place, reader: u8) -> Word {
        let own = self.in_flight.iter().rev().find(|store| (store.at, store.by) == (at, reader));
        own.map_or_else(|| self.words[Self::index(case, at)], |store| store.word)
    }

    /// Issues a store. They are kept in order of place, so that equal memories are equal values.
    ///
    /// Where nobody else stores or reads, it does not matter when a store lands: `alone` lands at once.
    pub fn issue(&mut self, case: &Case, store: Store, alone: bool) {
        if alone {
            self.words[Self::index(case, store.at)] = store.word;
            return;
        }
        let after = self.in_flight.partition_point(|other| (other.at, other.by) <= (store.at, store.by));
        self.in_flight.insert(after, store);
    }

    /// The stores that may land next.
    pub fn landing(&self) -> impl Iterator<Item = Store> {
        let place = |i: usize| (self.in_flight[i].at, self.in_flight[i].by);
        (0..self.in_flight.len())
            .filter(move |&i| i == 0 || place(i) != place(i - 1))
            .map(|i| self.in_flight[i])
    }

    /// Performs a store, and gives the word that it replaces.
    pub fn land(&mut self, case: &Case, store: Store) -> Word {
        let first = self.in_flight.iter().position(|other| *other == store).expect("it is in flight");
        self.in_flight.remove(first);
        std::mem::replace(&mut self.words[Self::index(case, store.at)], store.word)
    }

    pub fn is_quiet(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Whether another rank's store to the same word is on its way too.
    pub fn is_contended(&self, store: Store) -> bool {
        self.in_flight.iter().any(|other| other.at == store.at && other.by != store.by)
    }

    /// The stores of a rank to its own region that are on their way.
    pub fn arms(&self, rank: u8) -> impl Iterator<Item = Store> {
        self.in_flight.iter().copied().filter(move |store| store.is_arm() && store.by == rank)
    }

    /// Empties a region.
    pub fn empty(&mut self, case: &Case, region: u8) {
        let size = Self::region(case);
        self.words[region as usize * size..][..size].fill(EMPTY);
    }
}

/// One rank: its control words, and the threads of its launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rank {
    pub launch: u8,
    pub reset: bool,
    /// Its reset ended a fault.
    pub recovered: bool,
    pub fault: bool,
    /// The launch in which a poll timed out.
    pub timed_out: Option<u8>,
    pub epochs: [u8; MAX_SLOTS],
    pub threads: [Thread; MAX_THREADS],
    /// Of the launch after, whose blocks may have begun.
    pub early: [Prologue; MAX_THREADS],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Steps that it has done.
    pub step: u8,
    pub prologue: Prologue,
    /// The epoch that it read when it sent.
    pub epoch: u8,
    /// It saw a fault when it began.
    pub began_failed: bool,
    /// Its last poll ended without the words; of an `owner`, one of its launch.
    pub poll_failed: bool,
}

impl Hash for Thread {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            step,
            prologue: Prologue { begun, epoch: early, fault },
            epoch,
            began_failed,
            poll_failed,
        } = *self;
        let flags = [begun, fault, began_failed, poll_failed].map(u8::from);
        state.write_u64(u64::from_le_bytes([step, early, epoch, 0, flags[0], flags[1], flags[2], flags[3]]));
    }
}

/// What a thread has done before its wait. The protocol as it is does nothing there; mutations read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Prologue {
    pub begun: bool,
    pub epoch: u8,
    pub fault: bool,
}

/// What has gone wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Broken {
    /// A row was summed from words that are not of its launch.
    pub sum: bool,
    /// A store landed on a word that its reader still needed, or that another rank was storing to.
    pub lost: bool,
    /// A launch that began after a fault waited for its own timeout.
    pub second_timeout: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub memory: Memory,
    pub ranks: Vec<Rank>,
    pub broken: Broken,
}

impl State {
    pub fn new(case: &Case) -> Self {
        let rank = Rank { epochs: [case.first_epoch; MAX_SLOTS], ..Rank::default() };
        Self { memory: Memory::new(case), ranks: vec![rank; case.ranks as usize], broken: Broken::default() }
    }
}
