//! Where the ranks of a group meet to prepare, one thread each.

use crate::error::{Error, ErrorKind};
use crate::group::agreement::Agreement;
use crate::sync::lock;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Hands out the [`Session`] that gathers.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    ranks: u32,
    gathering: Mutex<Arc<Session>>,
}

/// One `prepare` of all ranks. Who begins another, because it has given up or its thread has died, finds another
/// session: it never meets those who are still in this one.
#[derive(Debug)]
pub(crate) struct Session {
    /// Where all say what they will prepare, or why they cannot.
    pub(crate) plans: Meeting<Result<Agreement, Error>>,
    /// Where all say whether they have.
    pub(crate) kernels: Meeting<Result<(), Error>>,
}

impl Rendezvous {
    pub(crate) fn new(ranks: u32) -> Rendezvous {
        Rendezvous { ranks, gathering: Mutex::new(Session::new(ranks)) }
    }

    /// The session to join.
    pub(crate) fn session(&self) -> Arc<Session> {
        let mut session = lock(&self.gathering);
        if session.plans.has_ended() {
            *session = Session::new(self.ranks);
        }
        Arc::clone(&session)
    }
}

impl Session {
    fn new(ranks: u32) -> Arc<Session> {
        Arc::new(Session { plans: Meeting::new(ranks), kernels: Meeting::new(ranks) })
    }
}

/// Ends when every rank has come, or when one that cannot come again has given up.
#[derive(Debug)]
pub(crate) struct Meeting<T> {
    state: Mutex<State<T>>,
    ended: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// By rank.
    brought: Vec<Option<T>>,
    outcome: Option<Result<Vec<T>, Error>>,
}

impl<T: Clone> Meeting<T> {
    fn new(ranks: u32) -> Meeting<T> {
        let brought = (0..ranks).map(|_| None).collect();
        Meeting { state: Mutex::new(State { brought, outcome: None }), ended: Condvar::new() }
    }

    fn has_ended(&self) -> bool {
        lock(&self.state).outcome.is_some()
    }

    /// Brings `value`, waits for the others, and answers everyone's, by rank. A rank that gives up may come again.
    pub(crate) fn join(&self, rank: u32, value: T, patience: Duration) -> Result<Vec<T>, Error> {
        self.wait(rank, value, patience, false)
    }

    /// [`join`](Meeting::join) for those who have met before: if one gives up, all fail with its error.
    pub(crate) fn join_again(&self, rank: u32, value: T, patience: Duration) -> Result<Vec<T>, Error> {
        self.wait(rank, value, patience, true)
    }

    fn wait(&self, rank: u32, value: T, patience: Duration, together: bool) -> Result<Vec<T>, Error> {
        // None where the clock does not reach so far: then there is none.
        let deadline = Instant::now().checked_add(patience);
        let mut state = lock(&self.state);
        match &state.outcome {
            Some(Err(error)) => return Err(error.clone()),
            // It ended with what another thread has brought.
            Some(Ok(_)) => return Err(ErrorKind::PreparedTwice { rank }.into()),
            None if state.brought[rank as usize].is_some() => {
                return Err(ErrorKind::PreparedTwice { rank }.into());
            }
            None => state.brought[rank as usize] = Some(value),
        }
        if state.brought.iter().all(Option::is_some) {
            state.outcome = Some(Ok(state.brought.iter_mut().filter_map(Option::take).collect()));
            self.ended.notify_all();
        }
        loop {
            if let Some(outcome) = &state.outcome {
                return outcome.clone();
            }
            let left = deadline.map_or(Duration::MAX, |d| d.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                let missing =
                    (0..).zip(&state.brought).filter(|(_, b)| b.is_none()).map(|(r, _)| r).collect();
                let error = Error::from(ErrorKind::PeerTimeout { missing, waited: patience });
                // Who comes later must not meet what this rank has left behind.
                state.brought[rank as usize] = None;
                if together {
                    state.outcome = Some(Err(error.clone()));
                    self.ended.notify_all();
                }
                return Err(error);
            }
            state = self.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(5);

    fn missing(error: &Error) -> &[u32] {
        match error.kind() {
            ErrorKind::PeerTimeout { missing, .. } => missing,
            _ => panic!("{error}"),
        }
    }

    fn failed() -> Result<Agreement, Error> {
        Err(ErrorKind::GroupSize { got: 0, max: 8 }.into())
    }

    #[test]
    fn everyone_learns_what_everyone_brought_again_and_again() {
        let rendezvous = Rendezvous::new(3);
        std::thread::scope(|scope| {
            for rank in 0..3u32 {
                let rendezvous = &rendezvous;
                scope.spawn(move || {
                    for _ in 0..50 {
                        let session = rendezvous.session();
                        assert_eq!(session.plans.join(rank, failed(), LONG).unwrap().len(), 3);
                        assert_eq!(session.kernels.join_again(rank, Ok(()), LONG).unwrap().len(), 3);
                    }
                });
            }
        });
    }

    #[test]
    fn who_does_not_come_is_named_and_who_gave_up_may_come_again() {
        let meeting = Meeting::new(3);
        assert_eq!(missing(&meeting.join(1, 'b', SHORT).unwrap_err()), [0, 2]);
        std::thread::scope(|scope| {
            for (rank, value) in [(0, 'a'), (1, 'c'), (2, 'd')] {
                let meeting = &meeting;
                scope.spawn(move || assert_eq!(meeting.join(rank, value, LONG).unwrap(), ['a', 'c', 'd']));
            }
        });
    }

    #[test]
    fn of_those_who_met_before_one_that_gives_up_speaks_for_all() {
        let meeting = Meeting::new(3);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| meeting.join_again(0, (), LONG).unwrap_err());
            let error = meeting.join_again(2, (), Duration::from_millis(50)).unwrap_err();
            assert!(missing(&error).contains(&1));
            assert_eq!(waiting.join().unwrap().kind(), error.kind());
            // Who is late is not left alone.
            assert_eq!(meeting.join_again(1, (), LONG).unwrap_err().kind(), error.kind());
        });
    }

    #[test]
    fn one_rank_is_not_prepared_by_two_threads() {
        let meeting = Meeting::new(2);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| meeting.join(0, 'a', LONG));
            while meeting.state.lock().unwrap().brought[0].is_none() {
                std::thread::yield_now();
            }
            let error = meeting.join(0, 'b', LONG).unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::PreparedTwice { rank: 0 });
            assert_eq!(meeting.join(1, 'c', LONG).unwrap(), ['a', 'c']);
            assert_eq!(first.join().unwrap().unwrap(), ['a', 'c']);
        });
        // Nor by one that comes when all is over: what it has brought nobody has seen.
        let error = meeting.join(0, 'd', LONG).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::PreparedTwice { rank: 0 });
    }
}
