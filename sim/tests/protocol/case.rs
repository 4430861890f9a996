//! What is checked: one group, its launches, and at most one rule broken.

use std::ops::Range;

use crate::mutation::Mutation;

pub const MAX_SLOTS: usize = 2;
pub const MAX_THREADS: usize = 4;

/// Stands for 3·2^30: a multiple of 3, near enough for a few launches to reach.
pub const EPOCHS: u8 = 6;

/// A group's launches, small enough to try every schedule of them.
#[derive(Clone, Debug)]
pub struct Case {
    pub ranks: u8,
    /// T of every launch, in order.
    pub launches: Vec<u8>,
    /// Threads that share a row; each sends one vector of it.
    pub lanes: u8,
    /// Words of a vector, which arrive apart.
    pub words: u8,
    /// Blocks that fit on the device at once. A launch of more tokens gives each block several.
    pub resident: u8,
    pub shape: Shape,
    pub first_epoch: u8,
    /// Ranks walk through the tokens of a block from different ones.
    pub own_order: bool,
    /// A launch's blocks may run up to their wait while the launch before is still going on.
    pub early_start: bool,
    /// A poll may end at any time, and then its launch has failed.
    pub timeouts: bool,
    /// A rank that never launches.
    pub absent: Option<u8>,
    /// The ranks reset the group together before this launch. No poll times out from then on.
    pub reset_before: Option<u8>,
    /// Leaves out schedules that nobody can tell from others; see [`Case::sends_at_once`] and
    /// [`Case::arms_at_the_end`].
    pub reduced: bool,
    pub mutation: Option<Mutation>,
    /// The one hop that the mutation is about; both without.
    pub only: Option<Hop>,
}

/// What travels from rank to rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// The ranks' rows, or slices of them.
    Rows,
    /// The sums that owners publish.
    Sums,
}

/// Who sends its row of a token to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Everyone to everyone, as `one_shot` does.
    AllReduce,
    /// Everyone to the token's owner.
    ReduceScatter,
    /// The token's owner to everyone.
    AllGather,
    /// Everyone to the vector's owner, who sends the sum to everyone, as `owner` does. A lane is a block of channels.
    Owner,
}

/// What a thread of a block does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends its vectors of these tokens of the block.
    Send(Range<u8>),
    /// If the thread's vector is the rank's own: waits for everyone's of this token of the block, and publishes the sum.
    Sum(u8),
    /// Waits for everyone's vector of this token of the block, or for its sum.
    Receive(u8),
    Done,
}

impl Case {
    /// An all-reduce by `one_shot`: one thread and one word a row, and room for every block.
    pub fn one_shot(ranks: u8, launches: &[u8]) -> Self {
        Self {
            ranks,
            launches: launches.to_vec(),
            lanes: 1,
            words: 1,
            resident: MAX_SLOTS as u8,
            shape: Shape::AllReduce,
            first_epoch: 0,
            own_order: false,
            early_start: false,
            timeouts: false,
            absent: None,
            reset_before: None,
            reduced: false,
            mutation: None,
            only: None,
        }
    }

    /// The same by `owner`, with so many blocks of channels a row.
    pub fn owner(ranks: u8, lanes: u8, launches: &[u8]) -> Self {
        Self { shape: Shape::Owner, lanes, ..Case::one_shot(ranks, launches) }
    }

    /// Whether the mutation is this one, and about this hop.
    pub fn breaks_in(&self, mutation: Mutation, hop: Hop) -> bool {
        self.breaks(mutation) && self.only.is_none_or(|only| only == hop)
    }

    pub fn breaks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub fn epochs(&self) -> u8 {
        // One more leaves 1 modulo 3, as 2^32 does.
        if self.breaks(Mutation::WrapOffTheGenerations) { EPOCHS + 1 } else { EPOCHS }
    }

    pub fn generations(&self, hop: Hop) -> u8 {
        if self.breaks_in(Mutation::TwoGenerations, hop) { 2 } else { 3 }
    }

    /// What a step waits for.
    pub fn awaits(&self, step: &Step) -> Option<(Hop, u8)> {
        match (step, self.shape) {
            (Step::Receive(i), Shape::Owner) => Some((Hop::Sums, *i)),
            (Step::Receive(i) | Step::Sum(i), _) => Some((Hop::Rows, *i)),
            (Step::Send(_) | Step::Done, _) => None,
        }
    }

    /// Blocks of a launch: one a token, as far as they fit.
    pub fn blocks(&self, launch: u8) -> u8 {
        let tokens = self.launches[launch as usize];
        if self.breaks(Mutation::MoreBlocksThanFit) { tokens } else { tokens.min(self.resident) }
    }

    pub fn threads(&self, launch: u8) -> u8 {
        self.blocks(launch) * self.lanes
    }

    /// Whether blocks have several tokens, and a rank's own row goes through its region like the others'.
    pub fn waves(&self, launch: u8) -> bool {
        self.launches[launch as usize] > self.blocks(launch)
    }

    fn tokens_of(&self, launch: u8, block: u8) -> u8 {
        (self.launches[launch as usize] - block).div_ceil(self.blocks(launch))
    }

    /// The slot of a block's `i`-th token.
    pub fn slot(&self, rank: u8, launch: u8, block: u8, i: u8) -> u8 {
        let tokens = self.tokens_of(launch, block);
        let i = if self.own_order { (i + rank) % tokens } else { i };
        block + i * self.blocks(launch)
    }

    pub fn step(&self, launch: u8, block: u8, step: u8) -> Step {
        let tokens = self.tokens_of(launch, block);
        if self.breaks(Mutation::ReceiveBeforeSendingAll) {
            match (step / 2, step % 2) {
                (i, _) if i == tokens => Step::Done,
                (i, 0) => Step::Send(i..i + 1),
                (i, _) => Step::Receive(i),
            }
        } else if self.shape == Shape::Owner {
            self.owner_step(tokens, step)
        } else {
            match step {
                0 => Step::Send(0..tokens),
                i if i <= tokens => Step::Receive(i - 1),
                _ => Step::Done,
            }
        }
    }

    /// All sends, then all sums, then all receives, of so many tokens.
    fn owner_step(&self, tokens: u8, step: u8) -> Step {
        match step {
            0 => return Step::Send(0..tokens),
            step if step > 2 * tokens => return Step::Done,
            _ => {}
        }
        let (turn, i) = match self.breaks(Mutation::SumTokenByToken) {
            false => ((step - 1) / tokens, (step - 1) % tokens),
            true => ((step - 1) % 2, (step - 1) / 2),
        };
        match (turn == 0) != self.breaks(Mutation::ReceiveBeforeSumming) {
            true => Step::Sum(i),
            false => Step::Receive(i),
        }
    }

    /// Words that thread `lane` of rank `from` sends to rank `to` for a slot, in one hop.
    pub fn words_of(&self, hop: Hop, launch: u8, slot: u8, from: u8, to: u8, lane: u8) -> u8 {
        let kept = from == to && !self.waves(launch);
        match (hop, self.shape) {
            (Hop::Rows, Shape::Owner) if to == self.owner_of(lane) && !kept => self.words,
            (Hop::Rows, Shape::Owner) => 0,
            (Hop::Rows, _) => self.words_sent(launch, slot, from, to, lane),
            (Hop::Sums, Shape::Owner) if from == self.owner_of(lane) && !kept => self.words,
            (Hop::Sums, _) => 0,
        }
    }

    pub fn owner_of(&self, lane: u8) -> u8 {
        lane % self.ranks
    }

    /// Words that thread `lane` of rank `from` sends to rank `to` for a slot: its vector; or, to a rank whose row it takes without
    /// giving one, one arrival word a row.
    fn words_sent(&self, launch: u8, slot: u8, from: u8, to: u8, lane: u8) -> u8 {
        let owner = slot % self.ranks;
        let row = |from: u8, to: u8| match self.shape {
            Shape::AllReduce | Shape::Owner => true,
            Shape::ReduceScatter => to == owner,
            Shape::AllGather => from == owner,
        };
        if from == to {
            if self.waves(launch) && row(from, to) { self.words } else { 0 }
        } else if row(from, to) {
            self.words
        } else {
            u8::from(row(to, from) && lane == 0 && !self.breaks(Mutation::NoArrivalWord))
        }
    }

    /// Whether a thread that may send does so before anything else happens. What it reads to send cannot change
    /// during its launch, unless a fault comes up, and what it sends takes as long as it likes anyway.
    pub fn sends_at_once(&self) -> bool {
        self.reduced && !self.timeouts
    }

    /// Whether the words that a launch empties all become so when it ends. Up to the first moment at which two
    /// ranks have stores to one word on their way, which counts as a lost word, nobody can tell.
    pub fn arms_at_the_end(&self) -> bool {
        self.reduced
    }

    pub fn timeouts_in(&self, launch: u8) -> bool {
        self.timeouts && self.reset_before.is_none_or(|reset| launch < reset)
    }
}
