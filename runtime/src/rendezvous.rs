//! Where the ranks of a group meet to exchange what they have, one thread each.

use crate::error::{Error, ErrorKind};
use std::any::Any;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

type Given = Box<dyn Any + Send + Sync>;

/// A meeting point for `ranks` threads, again and again.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    state: Mutex<Meeting>,
    changed: Condvar,
}

#[derive(Debug)]
struct Meeting {
    /// What each rank has brought to the meeting that gathers.
    brought: Vec<Option<Given>>,
    /// Counts meetings, so that who waits sees its own end.
    number: u64,
    /// What the last meeting ended with.
    outcome: Arc<Vec<Given>>,
}

impl Rendezvous {
    pub(crate) fn new(ranks: u32) -> Rendezvous {
        let meeting =
            Meeting { brought: (0..ranks).map(|_| None).collect(), number: 0, outcome: Arc::new(Vec::new()) };
        Rendezvous { state: Mutex::new(meeting), changed: Condvar::new() }
    }

    /// Brings `value`, waits for the others, and answers everyone's, by rank.
    pub(crate) fn meet<T: Clone + Send + Sync + 'static>(
        &self,
        rank: u32,
        value: T,
        patience: Duration,
    ) -> Result<Vec<T>, Error> {
        // None where the clock does not reach so far: then there is none.
        let deadline = Instant::now().checked_add(patience);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let number = state.number;
        state.brought[rank as usize] = Some(Box::new(value));
        if state.brought.iter().all(Option::is_some) {
            state.outcome = Arc::new(state.brought.iter_mut().filter_map(Option::take).collect());
            state.number += 1;
            self.changed.notify_all();
        }
        while state.number == number {
            let left = deadline.map_or(Duration::MAX, |d| d.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                let missing =
                    (0..state.brought.len() as u32).filter(|r| state.brought[*r as usize].is_none());
                let error = ErrorKind::PeerTimeout { missing: missing.collect(), waited: patience };
                // Who comes later must not meet what this rank has left behind.
                state.brought[rank as usize] = None;
                return Err(error.into());
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let outcome = Arc::clone(&state.outcome);
        drop(state);
        // Ranks that prepare different patterns come to the same meetings with the same types.
        Ok(outcome.iter().filter_map(|given| given.downcast_ref::<T>().cloned()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_learns_what_everyone_brought() {
        let meeting = Rendezvous::new(3);
        let patience = Duration::from_secs(20);
        std::thread::scope(|scope| {
            for rank in 0..3u32 {
                let meeting = &meeting;
                scope.spawn(move || {
                    for round in 0..50 {
                        let all = meeting.meet(rank, round * 10 + rank, patience).unwrap();
                        assert_eq!(all, [round * 10, round * 10 + 1, round * 10 + 2]);
                    }
                });
            }
        });
    }

    #[test]
    fn who_does_not_come_is_named() {
        let error = Rendezvous::new(3).meet(1, (), Duration::from_millis(5)).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::PeerTimeout { missing, .. } if missing == &[0, 2]),
            "{error}"
        );
    }
}
