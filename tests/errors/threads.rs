//! Ranks that prepare from threads, of which some die, give up, or come twice.

use super::support::*;
use seamline::executor::{Executor, HostKernel, HostLaunch};
use seamline::prelude::*;
use seamline::{Error, ErrorKind, Variant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

/// Whose first compilation panics.
#[derive(Debug, Default)]
struct Panicking(AtomicBool);

#[derive(Debug)]
struct Nothing;

impl Executor for Panicking {
    fn name(&self) -> &'static str {
        "panicking"
    }

    fn compile(&self, _: &[Variant]) -> Result<Box<dyn HostKernel>, Error> {
        assert!(self.0.swap(true, Ordering::Relaxed), "the first compilation panics, as the test wants");
        Ok(Box::new(Nothing))
    }
}

impl HostKernel for Nothing {
    fn run(&self, _: &[HostLaunch<'_>]) -> Result<(), Error> {
        Ok(())
    }
}

fn group() -> Vec<Rank> {
    Group::with_executor(Arc::new(Panicking::default()), 2).unwrap()
}

fn patient(milliseconds: u64) -> Prepare {
    options().timeout(Duration::from_millis(milliseconds))
}

type Preparing<'a> = ScopedJoinHandle<'a, Result<Kernel<Seam>, Error>>;

#[test]
fn a_rank_whose_thread_died_does_not_meet_who_still_waits_for_it() {
    let ranks = group();
    let prepare = |rank: usize| Seam::prepare(&ranks[rank], &patient(1500));
    std::thread::scope(|scope| {
        let mut threads: Vec<Preparing<'_>> = (0..2).map(|r| scope.spawn(move || prepare(r))).collect();
        let dead = loop {
            if let Some(dead) = threads.iter().position(Preparing::is_finished) {
                break dead;
            }
            std::thread::yield_now();
        };
        threads.remove(dead).join().unwrap_err();
        let waiting = threads.remove(0);
        // It comes again, and is the only one to do so.
        let again = scope.spawn(move || prepare(dead));
        for alone in [waiting, again] {
            let error = alone.join().unwrap().unwrap_err();
            assert_error!(error, ErrorKind::PeerTimeout { .. }, "`prepare` is collective");
        }
    });
    // The group is as good as new.
    std::thread::scope(|scope| {
        for rank in 0..2 {
            scope.spawn(move || prepare(rank).unwrap());
        }
    });
}

#[test]
fn a_rank_is_not_prepared_by_two_threads_at_a_time() {
    let ranks = Group::reference(2).unwrap();
    let errors: Vec<Error> = std::thread::scope(|scope| {
        let threads: Vec<Preparing<'_>> =
            (0..2).map(|_| scope.spawn(|| Seam::prepare(&ranks[0], &patient(1500)))).collect();
        threads.into_iter().map(|t| t.join().unwrap().unwrap_err()).collect()
    });
    let twice = |e: &Error| matches!(e.kind(), ErrorKind::PreparedTwice { rank: 0, .. });
    assert_eq!(errors.iter().filter(|e| twice(e)).count(), 1, "{errors:?}");
    let text = errors.iter().find(|e| twice(e)).unwrap().to_string();
    assert!(text.contains("one kernel after the other"), "{text}");
}
