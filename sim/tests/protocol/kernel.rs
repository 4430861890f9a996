//! What the threads of a launch do: `one_shot` and `owner`, action by action.
//!
//! An action is what nothing can come between. Sending is one action although it is many stores, because a
//! store is only issued there and lands in its own time; a barrier and the epoch's store go with the poll of
//! the last thread, because nobody looks at the epoch before the launch has ended.

use std::ops::Range;

use crate::case::{Case, Hop, Shape, Step};
use crate::mutation::Mutation;
use crate::state::{EMPTY, NAN, Place, Prologue, Rank, SUM, State, Store, Thread, Word};

/// What a poll finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    Missing,
    /// A row that is not its launch's.
    Wrong,
    Right,
}

/// One thread of one rank, in the rank's launch.
#[derive(Clone, Copy)]
pub struct Kernel<'a> {
    pub case: &'a Case,
    pub rank: u8,
    pub thread: u8,
}

impl Kernel<'_> {
    fn block(self) -> u8 {
        self.thread / self.case.lanes
    }

    fn lane(self) -> u8 {
        self.thread % self.case.lanes
    }

    fn neighbour(self) -> u8 {
        (self.rank + 1) % self.case.ranks
    }

    fn of(self, state: &State) -> &Rank {
        &state.ranks[self.rank as usize]
    }

    fn me(self, state: &State) -> &Thread {
        &self.of(state).threads[self.thread as usize]
    }

    fn me_mut(self, state: &mut State) -> &mut Thread {
        &mut state.ranks[self.rank as usize].threads[self.thread as usize]
    }

    fn threads_of(self, rank: &Rank, block: u8) -> &[Thread] {
        let lanes = self.case.lanes as usize;
        &rank.threads[block as usize * lanes..][..lanes]
    }

    fn slot(self, launch: u8, i: u8) -> u8 {
        self.case.slot(self.rank, launch, self.block(), i)
    }

    /// The step that this thread may do now; `None` at a barrier.
    pub fn step(self, state: &State) -> Option<Step> {
        let rank = self.of(state);
        let at = self.me(state).step;
        let step = |at| self.case.step(rank.launch, self.block(), at);
        let at_barrier = at > 0 && matches!(step(at - 1), Step::Receive(_));
        if at_barrier && self.threads_of(rank, self.block()).iter().any(|other| other.step < at) {
            return None;
        }
        if at == 0 && self.case.breaks(Mutation::MoreBlocksThanFit) && !self.fits(rank) {
            return None;
        }
        Some(step(at))
    }

    /// Whether this thread's block runs, or has room to.
    fn fits(self, rank: &Rank) -> bool {
        let begun = |block: u8| self.threads_of(rank, block).iter().any(|thread| thread.step > 0);
        let ended = |block: u8| {
            let done = |thread: &Thread| self.case.step(rank.launch, block, thread.step) == Step::Done;
            self.threads_of(rank, block).iter().all(done)
        };
        let running = (0..self.case.blocks(rank.launch)).filter(|&block| begun(block) && !ended(block));
        begun(self.block()) || (running.count() as u8) < self.case.resident
    }

    /// The epoch of a slot, as the thread reads it now.
    fn read_epoch(self, rank: &Rank, slot: u8) -> u8 {
        let prologue = rank.threads[self.thread as usize].prologue;
        match self.case.mutation {
            Some(Mutation::SharedEpoch) => rank.epochs[0],
            Some(Mutation::EpochFromTheHost) => rank.launch % 2,
            Some(Mutation::EpochBeforeWait) if prologue.begun => prologue.epoch,
            _ => rank.epochs[slot as usize],
        }
    }

    fn next_epoch(self, epoch: u8) -> u8 {
        (epoch + 1) % self.case.epochs()
    }

    /// Where the words that `from` sends `to` lie in launch `epoch` of a slot.
    fn place(self, hop: Hop, epoch: u8, slot: u8, (from, to): (u8, u8), word: u8) -> Place {
        let region = if self.case.breaks_in(Mutation::PollPeers, hop) { from } else { to };
        let generation = epoch % self.case.generations(hop);
        let from = if hop == Hop::Sums { SUM } else { from };
        Place { region, generation, slot, from, lane: self.lane(), word }
    }

    fn words(self, hop: Hop, launch: u8, slot: u8, from: u8, to: u8) -> u8 {
        self.case.words_of(hop, launch, slot, from, to, self.lane())
    }

    /// The thread begins while the launch before is still going on.
    pub fn begin(self, state: &mut State) {
        let launch = self.of(state).launch + 1;
        let slot = self.slot(launch, 0);
        let rank = &mut state.ranks[self.rank as usize];
        let prologue = &mut rank.early[self.thread as usize];
        *prologue = Prologue { begun: true, ..Prologue::default() };
        match self.case.mutation {
            Some(Mutation::EpochBeforeWait) => prologue.epoch = rank.epochs[slot as usize],
            Some(Mutation::FaultBeforeWait) => prologue.fault = rank.fault,
            Some(Mutation::ArmBeforeWait) => {
                // As long as the slot's launch is going on, the launch before the next is this one.
                let epoch = rank.epochs[slot as usize];
                self.arm(state, Hop::Rows, launch, slot, epoch);
                self.arm(state, Hop::Sums, launch, slot, epoch);
            }
            _ => {}
        }
    }

    /// Sends the thread's vectors of some of its block's tokens, and empties those of the launch before.
    pub fn send(self, state: &mut State, tokens: Range<u8>) {
        let rank = *self.of(state);
        let prologue = self.me(state).prologue;
        let fault = match self.case.mutation {
            Some(Mutation::FaultBeforeWait) if prologue.begun => prologue.fault,
            _ => rank.fault,
        };
        if tokens.start == 0 {
            self.me_mut(state).began_failed = fault;
        }
        for i in tokens {
            let slot = self.slot(rank.launch, i);
            let epoch = self.read_epoch(&rank, slot);
            self.me_mut(state).epoch = epoch;
            if fault && !self.case.breaks(Mutation::SendAfterFault) {
                continue;
            }
            let raw_nan =
                self.case.breaks_in(Mutation::RawNan, Hop::Rows) && (self.rank, rank.launch) == (0, 1);
            self.push(
                state,
                Hop::Rows,
                (rank.launch, slot, epoch),
                if raw_nan { EMPTY } else { rank.launch },
            );
            if !self.case.breaks(Mutation::ArmBeforeWait) || !prologue.begun {
                for hop in [Hop::Rows, Hop::Sums] {
                    let armed = match self.case.mutation.filter(|m| self.case.breaks_in(*m, hop)) {
                        Some(Mutation::ArmCurrent) => epoch,
                        Some(Mutation::ArmNext) => epoch + 1,
                        _ => epoch + self.case.generations(hop) - 1,
                    };
                    self.arm(state, hop, rank.launch, slot, armed);
                }
            }
        }
        self.me_mut(state).step += 1;
    }

    fn push(self, state: &mut State, hop: Hop, (launch, slot, epoch): (u8, u8, u8), data: Word) {
        // Where peers poll it, a row is stored once, whichever of them it is for.
        let once = self.case.breaks_in(Mutation::PollPeers, hop);
        for to in (0..self.case.ranks).filter(|&to| !once || to == self.neighbour()) {
            for word in 0..self.words(hop, launch, slot, self.rank, to) {
                let at = self.place(hop, epoch, slot, (self.rank, to), word);
                self.store(state, hop, at, data);
            }
        }
    }

    fn arm(self, state: &mut State, hop: Hop, launch: u8, slot: u8, epoch: u8) {
        if self.case.breaks_in(Mutation::NeverArm, hop) {
            return;
        }
        let own_row = self.case.breaks_in(Mutation::PollPeers, hop);
        for from in (0..self.case.ranks).filter(|&from| !own_row || from == self.rank) {
            let to = if own_row { self.neighbour() } else { self.rank };
            for word in 0..self.words(hop, launch, slot, from, to) {
                let at = self.place(hop, epoch, slot, (from, to), word);
                self.store(state, hop, at, EMPTY);
            }
        }
    }

    fn store(self, state: &mut State, hop: Hop, at: Place, word: Word) {
        let sender = if hop == Hop::Sums { self.case.owner_of(at.lane) } else { at.from };
        let own = (at.region, sender) == (self.rank, self.rank);
        let alone = own && !self.case.breaks_in(Mutation::PollPeers, hop);
        state.memory.issue(self.case, Store { at, by: self.rank, word }, alone);
    }

    /// An owner publishes a sum: of the slices that it has seen, or, if it has failed, none.
    fn publish(self, state: &mut State, i: u8) {
        let launch = self.of(state).launch;
        let slot = self.slot(launch, i);
        let epoch = self.epoch_of(state, slot);
        let failed = self.skips_polls(state);
        let raw_nan = self.case.breaks_in(Mutation::RawNan, Hop::Sums) && (self.rank, launch) == (0, 1);
        let data = match (failed, raw_nan) {
            (true, _) if self.case.breaks(Mutation::PublishAfterFault) => NAN,
            (true, _) => return,
            (false, true) => EMPTY,
            (false, false) => launch,
        };
        self.push(state, Hop::Sums, (launch, slot, epoch), data);
    }

    /// The epoch by which a slot is polled.
    fn epoch_of(self, state: &State, slot: u8) -> u8 {
        let rank = self.of(state);
        match self.case.waves(rank.launch) {
            true => self.read_epoch(rank, slot),
            false => self.me(state).epoch,
        }
    }

    /// What the thread's poll for its block's `i`-th token finds. Every word is of the same moment: since no
    /// store lands on a word that its reader still needs, which is checked, words read apart are the same.
    pub fn poll(self, state: &State, hop: Hop, i: u8) -> Poll {
        let rank = self.of(state);
        let slot = self.slot(rank.launch, i);
        let epoch = self.epoch_of(state, slot);
        let mut found = Poll::Right;
        for from in 0..self.case.ranks {
            for word in 0..self.words(hop, rank.launch, slot, from, self.rank) {
                let at = self.place(hop, epoch, slot, (from, self.rank), word);
                let data = state.memory.load(self.case, at, self.rank);
                if data == EMPTY && (word == 0 || !self.case.breaks(Mutation::CheckOneWord)) {
                    return Poll::Missing;
                }
                if data != rank.launch {
                    found = Poll::Wrong;
                }
            }
        }
        found
    }

    /// Whether the thread waits for no words, because its launch has failed already.
    pub fn skips_polls(self, state: &State) -> bool {
        let me = self.me(state);
        me.began_failed || (self.case.shape == Shape::Owner && me.poll_failed)
    }

    /// The thread leaves its poll for the slices of the block's `i`-th token, with the words or without.
    pub fn leave_sum(self, state: &mut State, i: u8, failed: bool) {
        self.me_mut(state).poll_failed |= failed;
        if self.rank == self.case.owner_of(self.lane()) {
            self.publish(state, i);
        }
        self.me_mut(state).step += 1;
    }

    /// The thread leaves its poll for the block's `i`-th token, with the words or without.
    pub fn leave_poll(self, state: &mut State, i: u8, failed: bool) {
        let launch = self.of(state).launch;
        let slot = self.slot(launch, i);
        let sticky = self.case.shape == Shape::Owner;
        let me = self.me_mut(state);
        me.poll_failed = failed || (sticky && me.poll_failed);
        me.step += 1;
        let steps = me.step;
        let all = self.threads_of(self.of(state), self.block()).iter().all(|thread| thread.step >= steps);
        let advances = match self.case.mutation {
            Some(Mutation::SharedEpoch) => false,
            Some(Mutation::AdvanceWithoutBarrier) => self.lane() == 0,
            _ => all,
        };
        // The first thread of the row does it, if its own poll has not failed.
        let failed = self.threads_of(self.of(state), self.block())[0].poll_failed;
        if advances && (!failed || self.case.breaks(Mutation::AdvanceAfterFault)) {
            let epoch = &mut state.ranks[self.rank as usize].epochs[slot as usize];
            *epoch = self.next_epoch(*epoch);
        }
    }
}
