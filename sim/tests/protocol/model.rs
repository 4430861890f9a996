//! The group as a transition system: every action that may come next, whoever takes it.

use std::fmt;

use stateright::{Model, Property};

use crate::case::{Case, Hop, MAX_SLOTS, Step};
use crate::kernel::{Kernel, Poll};
use crate::mutation::Mutation;
use crate::state::{EMPTY, NAN, Place, Rank, SUM, State, Store, Thread, Word};

/// Every row is the sum of its own launch's words.
pub const RIGHT: &str = "every row is its own launch's";
/// No store lands on a word that its reader still needs, or that another rank is storing to.
pub const KEPT: &str = "no word is lost";
/// Every schedule ends. Each action brings a thread or a store on for good, so no schedule is endless: it is
/// enough that none gets stuck.
pub const ENDS: &str = "every launch ends";
/// Launches behind a fault wait for nothing.
pub const ONE_TIMEOUT: &str = "a fault costs one timeout";
/// Witnesses that a proof is about something.
pub const NO_FAULT: &str = "some schedule ends without a fault";
pub const FAULT: &str = "some schedule ends with a fault";
pub const RECOVERED: &str = "some schedule ends after a fault and a reset";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A thread of the launch after begins.
    Begin { rank: u8, thread: u8 },
    /// A thread sends.
    Send { rank: u8, thread: u8 },
    /// A store is performed.
    Land(Store),
    /// A thread finds the slices that it sums, if it does, and publishes; or its launch has failed, and it does not.
    Sum { rank: u8, thread: u8 },
    /// A thread finds its words and leaves its poll; or its launch has failed, and it does not poll.
    Receive { rank: u8, thread: u8 },
    /// A poll's time is over.
    TimeOut { rank: u8, thread: u8 },
    /// A thread that polls learns of a fault.
    GiveUp { rank: u8, thread: u8 },
    /// The ranks, or one of them, reset.
    Reset { rank: Option<u8> },
}

impl Case {
    fn waits_for_reset(&self, rank: &Rank) -> bool {
        self.reset_before == Some(rank.launch) && !rank.reset
    }

    fn runs(&self, state: &State, rank: u8) -> bool {
        let of = &state.ranks[rank as usize];
        (of.launch as usize) < self.launches.len() && self.absent != Some(rank) && !self.waits_for_reset(of)
    }

    fn finished(&self, state: &State) -> bool {
        let done = |rank: u8| {
            self.absent == Some(rank) || state.ranks[rank as usize].launch as usize == self.launches.len()
        };
        (0..self.ranks).all(done)
    }

    fn actions_of(&self, state: &State, rank: u8, actions: &mut Vec<Action>) {
        let of = &state.ranks[rank as usize];
        for thread in 0..self.threads(of.launch) {
            let kernel = Kernel { case: self, rank, thread };
            match kernel.step(state) {
                None | Some(Step::Done) => {}
                Some(Step::Send(_)) => actions.push(Action::Send { rank, thread }),
                Some(step) => {
                    let Some((hop, i)) = self.awaits(&step) else { continue };
                    let early = self.breaks(Mutation::SumEarly) && matches!(step, Step::Sum(_));
                    if kernel.skips_polls(state) || early || kernel.poll(state, hop, i) != Poll::Missing {
                        actions.push(match step {
                            Step::Sum(_) => Action::Sum { rank, thread },
                            _ => Action::Receive { rank, thread },
                        });
                    } else if of.fault {
                        actions.push(Action::GiveUp { rank, thread });
                    } else if self.timeouts_in(of.launch) {
                        actions.push(Action::TimeOut { rank, thread });
                    }
                }
            }
        }
        let next = of.launch + 1;
        if self.early_start && (next as usize) < self.launches.len() && self.reset_before != Some(next) {
            let waiting = (0..self.threads(next)).filter(|&thread| !of.early[thread as usize].begun);
            actions.extend(waiting.map(|thread| Action::Begin { rank, thread }));
        }
    }

    fn resets(&self, state: &State, actions: &mut Vec<Action>) {
        let waits = |rank: &u8| self.waits_for_reset(&state.ranks[*rank as usize]);
        if self.breaks(Mutation::ResetAlone) {
            actions.extend((0..self.ranks).filter(waits).map(|rank| Action::Reset { rank: Some(rank) }));
        } else if state.memory.is_quiet() && (0..self.ranks).all(|rank| waits(&rank)) {
            actions.push(Action::Reset { rank: None });
        }
    }

    fn reset(&self, state: &mut State, rank: u8) {
        if !self.breaks(Mutation::ResetKeepsWords) {
            state.memory.empty(self, rank);
        }
        let of = &mut state.ranks[rank as usize];
        let epochs = if self.breaks(Mutation::ResetKeepsEpochs) { of.epochs } else { [0; MAX_SLOTS] };
        *of = Rank { launch: of.launch, reset: true, recovered: of.fault, epochs, ..Rank::default() };
    }

    /// Whether the reader of a place still needs the word that lies there.
    fn needed(&self, state: &State, at: Place, word: Word) -> bool {
        let reader = &state.ranks[at.region as usize];
        // A rank that knows of its fault reads nothing any more.
        if word == EMPTY || word == NAN || reader.fault || reader.launch > word {
            return false;
        }
        if reader.launch < word {
            return true;
        }
        let block = at.slot % self.blocks(word);
        let done = reader.threads[(block * self.lanes + at.lane) as usize].step;
        let hop = if at.from == SUM { Hop::Sums } else { Hop::Rows };
        let received = |step| match self.awaits(&self.step(word, block, step)) {
            Some((read, i)) => read == hop && self.slot(at.region, word, block, i) == at.slot,
            None => false,
        };
        !(0..done).any(received)
    }

    fn land(&self, state: &mut State, store: Store) {
        let replaced = state.memory.land(self, store);
        state.broken.lost |= self.needed(state, store.at, replaced) || state.memory.is_contended(store);
    }

    /// Ends a rank's launch if all its threads are done and, as the wait of the launch after says, its stores to
    /// its own region have been performed. Its stores to others may still be on their way: the protocol does not
    /// need more, though hardware gives it.
    fn end_launch(&self, state: &mut State, rank: u8) {
        let of = &state.ranks[rank as usize];
        let step = |thread: u8| self.step(of.launch, thread / self.lanes, of.threads[thread as usize].step);
        if !self.runs(state, rank) || (0..self.threads(of.launch)).any(|thread| step(thread) != Step::Done) {
            return;
        }
        if self.arms_at_the_end() {
            let arms: Vec<_> = state.memory.arms(rank).collect();
            arms.into_iter().for_each(|arm| self.land(state, arm));
        }
        if state.memory.arms(rank).next().is_some() && !self.breaks(Mutation::NoWait) {
            return;
        }
        let of = &mut state.ranks[rank as usize];
        of.launch += 1;
        of.threads = of.early.map(|prologue| Thread { prologue, ..Thread::default() });
        of.early = Default::default();
        if self.breaks(Mutation::SharedEpoch) {
            of.epochs = [(of.epochs[0] + 1) % self.epochs(); MAX_SLOTS];
        }
        if self.breaks(Mutation::ForgetFault) {
            of.fault = false;
        }
    }
}

impl Model for Case {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.sum || state.broken.second_timeout {
            return;
        }
        for rank in 0..self.ranks {
            if self.runs(state, rank) {
                self.actions_of(state, rank, actions);
            }
        }
        if self.sends_at_once()
            && let Some(send) = actions.iter().copied().find(|action| matches!(action, Action::Send { .. }))
        {
            actions.clear();
            actions.push(send);
            return;
        }
        self.resets(state, actions);
        let lands = |store: &Store| !(self.arms_at_the_end() && store.is_arm());
        actions.extend(state.memory.landing().filter(lands).map(Action::Land));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut state = state.clone();
        let kernel = |rank, thread| Kernel { case: self, rank, thread };
        match action {
            Action::Begin { rank, thread } => kernel(rank, thread).begin(&mut state),
            Action::Send { rank, thread } => {
                let kernel = kernel(rank, thread);
                if let Some(Step::Send(tokens)) = kernel.step(&state) {
                    kernel.send(&mut state, tokens);
                }
            }
            Action::Land(store) => {
                self.land(&mut state, store);
                self.end_launch(&mut state, store.by);
            }
            Action::Sum { rank, thread }
            | Action::Receive { rank, thread }
            | Action::TimeOut { rank, thread }
            | Action::GiveUp { rank, thread } => {
                let kernel = kernel(rank, thread);
                let step = kernel.step(&state)?;
                let (hop, i) = self.awaits(&step)?;
                if let Action::TimeOut { .. } = action {
                    let of = &mut state.ranks[rank as usize];
                    state.broken.second_timeout |= of.timed_out.is_some_and(|launch| launch != of.launch);
                    of.timed_out = Some(of.launch);
                    of.fault = true;
                }
                let in_time = matches!(action, Action::Receive { .. } | Action::Sum { .. });
                let received = in_time && !kernel.skips_polls(&state);
                state.broken.sum |= received && kernel.poll(&state, hop, i) != Poll::Right;
                match step {
                    Step::Sum(_) => kernel.leave_sum(&mut state, i, !received),
                    _ => kernel.leave_poll(&mut state, i, !received),
                }
                self.end_launch(&mut state, rank);
            }
            Action::Reset { rank } => {
                let ranks = rank.map_or(0..self.ranks, |rank| rank..rank + 1);
                ranks.for_each(|rank| self.reset(&mut state, rank));
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn ends(case: &Case, state: &State) -> bool {
            let mut actions = Vec::new();
            if state.memory.is_quiet() && !state.broken.sum && !state.broken.second_timeout {
                case.actions(state, &mut actions);
                return !actions.is_empty() || case.finished(state);
            }
            true
        }
        fn faulted(state: &State) -> bool {
            state.ranks.iter().any(|rank| rank.fault)
        }
        vec![
            Property::always(RIGHT, |_, state: &State| !state.broken.sum),
            Property::always(KEPT, |_, state: &State| !state.broken.lost),
            Property::always(ENDS, ends),
            Property::always(ONE_TIMEOUT, |_, state: &State| !state.broken.second_timeout),
            Property::sometimes(NO_FAULT, |case: &Case, state: &State| {
                case.finished(state) && !faulted(state)
            }),
            Property::sometimes(FAULT, |case: &Case, state: &State| case.finished(state) && faulted(state)),
            Property::sometimes(RECOVERED, |case: &Case, state: &State| {
                case.finished(state) && state.ranks.iter().any(|rank| rank.recovered)
            }),
        ]
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Action::Begin { rank, thread } => {
                write!(f, "rank {rank}, thread {thread} begins the next launch")
            }
            Action::Send { rank, thread } => write!(f, "rank {rank}, thread {thread} sends and re-arms"),
            Action::Sum { rank, thread } => write!(f, "rank {rank}, thread {thread} sums and publishes"),
            Action::Receive { rank, thread } => write!(f, "rank {rank}, thread {thread} receives"),
            Action::TimeOut { rank, thread } => write!(f, "rank {rank}, thread {thread} times out"),
            Action::GiveUp { rank, thread } => write!(f, "rank {rank}, thread {thread} gives up"),
            Action::Reset { rank: None } => write!(f, "the group resets"),
            Action::Reset { rank: Some(rank) } => write!(f, "rank {rank} resets alone"),
            Action::Land(Store { at, by, word }) => {
                let Place { region, generation, slot, from, lane, word: index } = at;
                let what = match word {
                    EMPTY => "empty".to_owned(),
                    NAN => "NaN".to_owned(),
                    launch => format!("launch {launch}"),
                };
                write!(f, "rank {by}'s store lands: {what}, in region {region}, generation {generation}, ")?;
                match from {
                    SUM => write!(f, "slot {slot}, sum, word {lane}.{index}"),
                    row => write!(f, "slot {slot}, row {row}, word {lane}.{index}"),
                }
            }
        }
    }
}
