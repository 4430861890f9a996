//! Forks: further groups of the same ranks, for launches that are in no order with the group's own.
//!
//! Two groups in flight on one device poll beside each other, so a kernel is planned for as many launches at once as
//! there are groups. That holds only if none comes later: the first kernel that exchanges closes the [`Family`].

use crate::error::{Error, ErrorKind};
use crate::group::Rank;
use crate::group::state::State;
use crate::sync::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A group, its forks, and theirs: all whose kernels may be on a device at the same time.
#[derive(Debug, Default)]
pub(crate) struct Family(Mutex<Members>);

#[derive(Debug, Default)]
struct Members {
    /// All that were ever made: what a dropped one has launched may still run.
    forks: u32,
    /// The pattern that was planned for so many.
    planned: Option<String>,
}

impl Family {
    /// How many forks there are, and will be: `pattern` is planned for them.
    pub(crate) fn close(&self, pattern: &str) -> u32 {
        let mut members = lock(&self.0);
        members.planned.get_or_insert_with(|| pattern.to_owned());
        members.forks
    }

    /// One fork more, unless a pattern was planned without it.
    fn open<T>(&self, make: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let mut members = lock(&self.0);
        if let Some(pattern) = &members.planned {
            return Err(ErrorKind::LateFork { pattern: pattern.clone() }.into());
        }
        let made = make()?;
        members.forks += 1;
        Ok(made)
    }
}

/// The forks of one group.
#[derive(Debug)]
pub(crate) struct Forks(Mutex<Taken>);

#[derive(Debug)]
struct Taken {
    /// By rank: how many it has taken.
    counts: Vec<usize>,
    /// Those that some ranks have taken and others have not, in order. A fork knows nothing of its group, so what is
    /// left here ends with the group.
    waiting: VecDeque<Arc<State>>,
    /// How many all ranks have taken.
    by_all: usize,
}

impl Forks {
    pub(crate) fn new(ranks: u32) -> Forks {
        let counts = vec![0; ranks as usize];
        Forks(Mutex::new(Taken { counts, waiting: VecDeque::new(), by_all: 0 }))
    }

    /// The next one for `rank`: what another rank has made, or what `make` makes.
    fn take(&self, rank: u32, make: impl FnOnce() -> Result<Arc<State>, Error>) -> Result<Arc<State>, Error> {
        let mut guard = lock(&self.0);
        let taken = &mut *guard;
        let at = taken.counts[rank as usize] - taken.by_all;
        if at == taken.waiting.len() {
            taken.waiting.push_back(make()?);
        }
        let fork = Arc::clone(&taken.waiting[at]);
        taken.counts[rank as usize] += 1;
        if taken.counts.iter().all(|count| *count > taken.by_all) {
            taken.waiting.pop_front();
            taken.by_all += 1;
        }
        Ok(fork)
    }
}

impl Rank {
    /// This rank in a further group of the same ranks, for a second batch in flight.
    ///
    /// The fork has the same index, size, executor and device, and shares compiled and loaded code. What a launch
    /// changes is its own: exchange memory with its epochs, status and fault, the streams of its ranks. So its
    /// launches are in no order with this group's, and run beside them on streams of their own; a fault or a
    /// [`reset`](crate::reset) of one group is none of the other's.
    ///
    /// ```
    /// # use seamline_runtime::{Error, Group, Kernel, Pattern, Prepare, Rank};
    /// /// The kernels of two batches that overlap, per batch and rank.
    /// fn two_batches<P: Pattern>(ranks: &[Rank], options: &Prepare) -> Result<[Vec<Kernel<P>>; 2], Error> {
    ///     let forks = ranks.iter().map(Rank::fork).collect::<Result<Vec<_>, _>>()?;
    ///     // The second finds everything compiled.
    ///     Ok([P::prepare_all(ranks, options)?, P::prepare_all(&forks, options)?])
    /// }
    /// # let ranks = Group::reference(2)?;
    /// # let fork = ranks[1].fork()?;
    /// # assert_eq!((fork.index(), fork.group_size(), fork.executor()), (1, 2, "reference"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Who joins whom
    /// Forks are numbered: the first that each rank of a group takes are one group, the second another, and so on, in
    /// whatever order, from one thread or from one per rank. Nobody waits: the first call makes the fork's control
    /// words, on all ranks; the others find them. The exchange memory is made when a kernel is prepared on the fork,
    /// which is collective as ever: it waits for the other ranks to fork and prepare, up to
    /// [`Prepare::timeout`](crate::Prepare::timeout). A fork that only some ranks have taken is kept until the others
    /// take it, or until this group ends. Clones of a rank are one rank. A fork is a group like any other and may be
    /// forked; its forks are numbered apart from this group's.
    ///
    /// # Fork first, then prepare, then launch
    /// Kernels of all these groups poll beside each other, and each must find room beside the others: they are planned
    /// for as many groups as there are, narrower or in more waves with each. So all forks are taken before the first
    /// kernel that exchanges is prepared, on the group or on any of its forks; even a `prepare` that fails is one. A fork
    /// counts from then on, even if it is dropped. A group of one rank has nobody to poll for, and may be forked at any
    /// time. And to load code may take until the device is idle: prepare on all groups before any of them launches.
    ///
    /// For the same reason no kernel that exchanges has an [`early_trigger`](crate::Prepare::early_trigger) on any of these
    /// groups: its successor could be of any size, and take that room.
    ///
    /// # Streams
    /// Ranks of both groups may share a stream if every rank queues the two groups' launches in the same order. With
    /// streams of its own each fork adds one per rank; `Group::loopback` says how many a process has room for.
    ///
    /// # Errors
    /// [`ErrorKind::LateFork`], or a driver that fails. A call that fails has taken nothing.
    pub fn fork(&self) -> Result<Rank, Error> {
        let group = &self.group;
        let fork = group.forks.take(self.index, || group.family.open(|| group.fork()))?;
        Ok(Rank { group: fork, index: self.index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Group;

    #[test]
    fn a_fork_ends_with_its_last_rank() {
        let ranks = Group::reference(2).unwrap();
        let forks: Vec<_> = ranks.iter().map(|r| r.fork().unwrap()).collect();
        assert!(Arc::ptr_eq(&forks[0].group, &forks[1].group));
        let fork = Arc::downgrade(&forks[0].group);
        drop(forks);
        assert_eq!(fork.strong_count(), 0);
    }

    #[test]
    fn a_fork_that_a_rank_has_yet_to_take_is_kept_until_the_group_ends() {
        let ranks = Group::reference(2).unwrap();
        let early = [ranks[0].fork().unwrap(), ranks[0].fork().unwrap()];
        let [first, second] = early.each_ref().map(|rank| Arc::downgrade(&rank.group));
        drop(early);
        let late = ranks[1].fork().unwrap();
        assert!(Arc::ptr_eq(&late.group, &first.upgrade().unwrap()));
        drop(late);
        assert_eq!((first.strong_count(), second.strong_count()), (0, 1));
        drop(ranks);
        assert_eq!(second.strong_count(), 0);
    }

    #[test]
    fn a_fork_that_cannot_be_made_has_not_been_taken() {
        let ranks = Group::reference(2).unwrap();
        let group = &ranks[0].group;
        let failed = group.forks.take(0, || Err(ErrorKind::GroupSize { got: 0, max: 8 }.into()));
        assert!(failed.is_err());
        let forks: Vec<_> = ranks.iter().map(|r| r.fork().unwrap()).collect();
        assert!(Arc::ptr_eq(&forks[0].group, &forks[1].group));
    }
}
