//! Which stream each rank's launches are on.
//!
//! A launch asks with one load. Only the first one of a rank, and a move, take the lock.

use crate::error::ErrorKind;
use crate::queue::{Kind, Queue};
use crate::sync::lock;
use cudarc::driver::CudaStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The streams of a group's ranks.
#[derive(Debug)]
pub(super) struct Streams {
    /// By rank: a handle, or [`NONE`].
    current: Vec<AtomicUsize>,
    /// By rank: keeps a stream of cudarc's alive, so that its handle names no other stream. Held while `current`
    /// changes.
    owners: Mutex<Vec<Option<Arc<CudaStream>>>>,
}

/// No stream's handle.
const NONE: usize = usize::MAX;
/// `CU_STREAM_LEGACY`: a second name of the null handle.
const LEGACY: usize = 1;
/// `CU_STREAM_PER_THREAD`: names another stream on each thread.
const PER_THREAD: usize = 2;

/// A stream's handle, and cudarc's stream if it is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle<'a>(usize, Option<&'a Arc<CudaStream>>);

impl<'a> Handle<'a> {
    /// Refuses what is no stream of the device, or not the same one on every thread.
    #[inline]
    pub(super) fn of(queue: Queue<'a>) -> Result<Handle<'a>, ErrorKind> {
        let (handle, owner) = match queue.0 {
            Kind::Host(_) => {
                return Err(ErrorKind::Queue {
                    executor: "cuda",
                    expected: "a CUDA stream",
                    got: "`Queue::host()`",
                });
            }
            Kind::Stream(stream) => (stream.cu_stream() as usize, Some(stream)),
            Kind::Raw(stream) => (stream as usize, None),
        };
        match handle {
            PER_THREAD => Err(ErrorKind::PerThreadStream),
            LEGACY => Ok(Handle(0, owner)),
            _ => Ok(Handle(handle, owner)),
        }
    }

    /// As a number, for comparing.
    pub(super) fn number(self) -> usize {
        self.0
    }
}

impl Streams {
    pub(super) fn new(ranks: u32) -> Streams {
        Streams {
            current: (0..ranks).map(|_| AtomicUsize::new(NONE)).collect(),
            owners: Mutex::new(vec![None; ranks as usize]),
        }
    }

    pub(super) fn ranks(&self) -> u32 {
        self.current.len() as u32
    }

    /// Refuses a launch on another stream than the one before it, or than a peer's unless `shared`. Changes
    /// nothing.
    #[inline]
    pub(super) fn check(&self, rank: u32, stream: Handle<'_>, shared: bool) -> Result<(), ErrorKind> {
        match self.current[rank as usize].load(Ordering::Relaxed) {
            current if current == stream.0 => Ok(()),
            NONE if shared => Ok(()),
            NONE => self.nobody_elses(rank, stream),
            _ => Err(ErrorKind::SecondStream),
        }
    }

    /// [`check`](Streams::check), and from now on this rank's launches are there.
    #[inline]
    pub(super) fn bind(&self, rank: u32, stream: Handle<'_>, shared: bool) -> Result<(), ErrorKind> {
        match self.current[rank as usize].load(Ordering::Relaxed) {
            current if current == stream.0 => Ok(()),
            _ => self.bind_first(rank, stream, shared),
        }
    }

    #[cold]
    fn bind_first(&self, rank: u32, stream: Handle<'_>, shared: bool) -> Result<(), ErrorKind> {
        let mut owners = lock(&self.owners);
        self.check(rank, stream, shared)?;
        owners[rank as usize] = stream.1.cloned();
        self.current[rank as usize].store(stream.0, Ordering::Relaxed);
        Ok(())
    }

    /// Moves the rank, once `order(from, to)` has let what comes to `to` wait for what `from` has.
    pub(super) fn move_to<E: From<ErrorKind>>(
        &self,
        rank: u32,
        stream: Handle<'_>,
        order: impl FnOnce(usize, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut owners = lock(&self.owners);
        let current = self.current[rank as usize].load(Ordering::Relaxed);
        self.nobody_elses(rank, stream)?;
        if current != NONE && current != stream.0 {
            order(current, stream.0)?;
        }
        owners[rank as usize] = stream.1.cloned();
        self.current[rank as usize].store(stream.0, Ordering::Relaxed);
        Ok(())
    }

    /// Ranks that poll for each other on one stream would wait for ever.
    #[cold]
    fn nobody_elses(&self, rank: u32, stream: Handle<'_>) -> Result<(), ErrorKind> {
        let same = |other: &u32| self.current[*other as usize].load(Ordering::Relaxed) == stream.0;
        match (0..self.current.len() as u32).filter(|other| *other != rank).find(same) {
            Some(other) => Err(ErrorKind::SharedStream { first: rank.min(other), second: rank.max(other) }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(handle: usize) -> Queue<'static> {
        // SAFETY: nothing is queued on it.
        unsafe { Queue::raw(handle as *mut std::ffi::c_void) }
    }

    fn handle(number: usize) -> Handle<'static> {
        Handle::of(raw(number)).unwrap()
    }

    #[test]
    fn a_rank_stays_on_its_stream_until_it_is_moved() {
        let streams = Streams::new(2);
        let (a, b) = (handle(0x100), handle(0x200));
        streams.check(0, a, false).unwrap();
        streams.bind(0, b, false).unwrap();
        assert_eq!(streams.check(0, a, false), Err(ErrorKind::SecondStream));
        assert_eq!(streams.bind(0, a, false), Err(ErrorKind::SecondStream));
        let mut ordered = None;
        let order = |from, to| {
            ordered = Some((from, to));
            Ok::<(), ErrorKind>(())
        };
        streams.move_to(0, a, order).unwrap();
        assert_eq!(ordered, Some((0x200, 0x100)));
        streams.bind(0, a, false).unwrap();
        streams.bind(1, b, false).unwrap();
    }

    #[test]
    fn a_move_that_fails_changes_nothing() {
        let streams = Streams::new(1);
        streams.bind(0, handle(0x100), false).unwrap();
        let error = streams.move_to(0, handle(0x200), |_, _| Err(ErrorKind::SecondStream)).unwrap_err();
        assert_eq!(error, ErrorKind::SecondStream);
        streams.check(0, handle(0x100), false).unwrap();
    }

    #[test]
    fn two_ranks_do_not_share_a_stream() {
        let streams = Streams::new(3);
        let (a, b) = (handle(0x100), handle(0x200));
        streams.bind(1, a, false).unwrap();
        let shared = Err(ErrorKind::SharedStream { first: 0, second: 1 });
        assert_eq!(streams.check(0, a, false), shared);
        assert_eq!(streams.bind(0, a, false), shared);
        streams.bind(0, b, false).unwrap();
        assert_eq!(streams.move_to(0, a, |_, _| Ok(())), shared);
        // One grid runs all of them.
        streams.bind(2, a, true).unwrap();
    }

    #[test]
    fn the_default_streams_are_told_apart() {
        assert_eq!(Handle::of(raw(PER_THREAD)).unwrap_err(), ErrorKind::PerThreadStream);
        assert_eq!(handle(LEGACY).number(), handle(0).number());
        assert!(matches!(Handle::of(Queue::host()), Err(ErrorKind::Queue { .. })));
    }
}
