//! Puts in words what went wrong: which thread broke a rule, or who waits for what.

use crate::cluster::{Cluster, Violation, Wait};
use crate::error::{At, Fault, SimError, Waiting};
use crate::launch::{Launch, describe};
use crate::order::Order;
use crate::races::Wrong;
use crate::thread::{Broken, Place};
use std::collections::HashMap;
use std::ffi::CStr;
use std::mem::{Discriminant, discriminant};

/// Where it happened.
pub(crate) struct Scene<'a> {
    pub launches: &'a [Launch],
    pub order: Order,
}

impl Scene<'_> {
    fn at(&self, cluster: &Cluster, t: usize) -> At {
        let launch = &self.launches[cluster.launch];
        let context = cluster.threads[t].fiber.context();
        let place = context.place.get();
        let file = file_name(place);
        At {
            entry: launch.entry.to_string(),
            launch: cluster.launch,
            rank: launch.rank,
            block: (context.block, context.grid_row),
            thread: context.thread,
            source: launch.library.line(&file, place.line),
            file,
            line: place.line,
        }
    }

    /// Thread `t` of `cluster` did `violation`.
    pub fn fault(&self, cluster: &Cluster, t: usize, violation: Violation) -> SimError {
        let there = |address| describe(&self.launches[cluster.launch].memory, address);
        let place = |p: Place| format!("{}:{}", file_name(p), p.line);
        let fault = match violation {
            Violation::Plain(fault) => fault,
            Violation::Divergent { primitive, other } => Fault::Divergent { primitive, place: place(other) },
            Violation::EndsBeforeBarrier { waiting, other } => {
                Fault::EndsBeforeBarrier { waiting, place: place(other) }
            }
            Violation::Broken(broken) => match broken {
                Broken::Memory { access, address, bytes } => {
                    Fault::Memory { verb: access.verb(), bytes, place: there(address) }
                }
                Broken::Misaligned { access, address, bytes } => {
                    Fault::Misaligned { verb: access.verb(), bytes, place: there(address) }
                }
                Broken::BeforeWait { access, address } => {
                    Fault::BeforeWait { verb: access.verb(), place: there(address) }
                }
                Broken::PushesEmpty { address } => Fault::PushesEmpty { place: there(address) },
                Broken::ArmsFull { address } => Fault::ArmsFull { place: there(address) },
                Broken::Shared(verb, wrong) => match wrong {
                    Wrong::Address => Fault::SharedAddress { verb },
                    Wrong::Unwritten => Fault::SharedUnwritten,
                    Wrong::Race { earlier, wrote } => Fault::SharedRace {
                        verb,
                        earlier: if wrote { "written" } else { "read" },
                        block: earlier.block,
                        thread: earlier.thread % self.launches[cluster.launch].threads,
                        place: place(earlier.place),
                    },
                },
                Broken::Overwrites { address } => Fault::Overwrites { place: there(address) },
            },
        };
        let at = Box::new(self.at(cluster, t));
        let pattern = self.launches[cluster.launch].library.pattern().to_owned();
        SimError::Fault { pattern, at, fault, order: self.order }
    }

    /// Nobody can go on. Threads of a launch that wait at one line for one kind of thing are told once.
    pub fn deadlock<'c>(&self, clusters: impl Iterator<Item = &'c Cluster>) -> SimError {
        let mut groups = HashMap::<(usize, Place, Discriminant<Wait>), usize>::new();
        let mut waits = Vec::<Waiting>::new();
        for cluster in clusters {
            for (t, thread) in cluster.threads.iter().enumerate() {
                if matches!(thread.wait, Wait::Turn | Wait::Asleep | Wait::Ended) {
                    continue;
                }
                let group = (cluster.launch, cluster.place(t), discriminant(&thread.wait));
                let index = *groups.entry(group).or_insert_with(|| {
                    waits.push(Waiting {
                        at: self.at(cluster, t),
                        threads: 0,
                        awaits: self.awaits(cluster, t),
                    });
                    waits.len() - 1
                });
                waits[index].threads += 1;
            }
        }
        let pattern = self.launches.first().map_or("", |l| l.library.pattern()).to_owned();
        SimError::Deadlock { pattern, waits, order: self.order }
    }

    fn awaits(&self, cluster: &Cluster, t: usize) -> String {
        let there = |address| describe(&self.launches[cluster.launch].memory, address);
        let thread = &cluster.threads[t];
        match thread.wait {
            Wait::Turn | Wait::Asleep | Wait::Ended => "nothing".into(),
            Wait::Block => "its block, at `block_barrier`".into(),
            Wait::Cluster => "its cluster, at `cluster_wait`".into(),
            Wait::Mbarrier { offset, .. } => match cluster.lacks(t, offset) {
                Some(lacks) => format!("an mbarrier of its block, which lacks {lacks}"),
                None => "an mbarrier of its block, whose next phase nobody has begun".into(),
            },
            Wait::Grid => "the launch before it, at `grid_wait`".into(),
            Wait::Shuffle { .. } => "the other lanes of its warp, at a shuffle".into(),
            Wait::Poll => format!("a row, at {}", there(thread.fiber.context().polled.first())),
            Wait::Word { address, seen } => format!("another value than {seen}, at {}", there(address)),
        }
    }
}

fn file_name(place: Place) -> String {
    if place.file.is_null() {
        return String::new();
    }
    // SAFETY: a string literal of the kernel's, whose library is loaded.
    unsafe { CStr::from_ptr(place.file) }.to_string_lossy().into_owned()
}
