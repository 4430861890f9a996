//! The machine: runs the clusters of all launches on one OS thread, one fiber at a time.
//!
//! A thread runs until it must wait, so a run is a sequence that the [`Order`] alone decides. Clusters begin when those that
//! run can do no more; all of them may be alive at once, because a kernel that exchanges waits for its peers' blocks.
//! Nothing waits in real time: when all wait, the clock moves on, and a poll that is bounded sees its time expire.

use crate::bits::Bits;
use crate::cluster::{Cluster, Outcome};
use crate::diagnosis;
use crate::error::SimError;
use crate::fiber::Fiber;
use crate::launch::Launch;
use crate::order::{Chooser, Order};
use crate::queues::{Queued, Queues};
use crate::stack::Stacks;
use crate::thread::{Context, LaunchView, Position, Request};
use crate::waiting::Waiting;
use crate::world::World;
use crate::{Options, Report};
use std::cell::Cell;

/// Once in so many pauses, a thread sleeps until nobody else can run.
const SLEEP_ONE_IN: usize = 32;
pub(crate) struct Machine<'a> {
    launches: &'a [Launch],
    // Fibers point to the world and the views, which therefore never move, and stand on the stacks: dropped in this order.
    clusters: Vec<Option<Cluster>>,
    world: Box<World>,
    views: Vec<LaunchView>,
    stacks: Stacks,
    queues: Queues,
    /// Threads that a random order has put to sleep, by cluster and index: they go on when nobody else can.
    sleepers: Vec<(usize, usize)>,
    /// Clusters with a thread that can run.
    active: Bits,
    cursor: usize,
    chooser: Chooser,
    waiting: Waiting,
    report: Report,
}

impl<'a> Machine<'a> {
    pub fn new(launches: &'a [Launch], options: &Options) -> Result<Machine<'a>, SimError> {
        let mut chooser = Chooser::new(options.order);
        let world = Box::new(World::new(options.order));
        let queues = Queues::new(launches, options, &mut chooser, world.clock())?;
        let view = |(index, (launch, queued)): (usize, (&Launch, &Queued))| LaunchView {
            index,
            memory: launch.memory.clone(),
            open: Cell::new(queued.previous.is_none()),
        };
        let views = launches.iter().zip(&queues.launches).enumerate().map(view).collect();
        let waiting = Waiting::new(world.clock());
        Ok(Machine {
            launches,
            clusters: Vec::new(),
            world,
            views,
            stacks: Stacks::default(),
            queues,
            sleepers: Vec::new(),
            active: Bits::default(),
            cursor: 0,
            chooser,
            waiting,
            report: Report::default(),
        })
    }

    pub fn run(mut self) -> Result<Report, SimError> {
        self.begin_launches();
        loop {
            if self.chooser.perhaps(8) {
                self.begin_cluster()?;
            }
            if self.chooser.perhaps(256) && !self.clusters.is_empty() {
                let any = self.chooser.below(self.clusters.len());
                self.wake_polls_of(any, false);
            }
            let advanced = self.step()?
                || self.begin_cluster()?
                || self.wake_polls(false)
                || self.wake_sleepers()
                || self.deliver();
            if !advanced && !self.pass_time()? {
                break;
            }
        }
        self.report.simulated_ns = self.world.clock();
        let report = self.report;
        self.stacks.keep();
        Ok(report)
    }

    /// Runs one thread until it waits; false if none can run.
    fn step(&mut self) -> Result<bool, SimError> {
        // Also a random order stays with a cluster for a while: its stacks are in the cache.
        let stays = self.active.contains(self.cursor) && !self.chooser.perhaps(16);
        if !stays {
            let Some(c) = self.chooser.pick(&self.active, self.cursor) else { return Ok(false) };
            self.cursor = c;
        }
        let c = self.cursor;
        let Some(cluster) = &mut self.clusters[c] else { return Ok(false) };
        let Some(t) = self.chooser.pick(&cluster.ready, cluster.cursor) else { return Ok(false) };
        cluster.cursor = self.chooser.after(t);
        self.report.switches += 1;
        let request = cluster.threads[t].fiber.resume();
        let waits_on = matches!(request, Some(Request::Pause | Request::Poll | Request::Word { .. }));
        let queued = &mut self.queues.launches[cluster.launch];
        if queued.sleepy && matches!(request, Some(Request::Pause)) && self.chooser.perhaps(SLEEP_ONE_IN) {
            cluster.sleep(t);
            self.sleepers.push((c, t));
        }
        let outcome = match request {
            Some(request) => cluster.handle(t, request, &mut queued.layout),
            None => cluster.end(t),
        };
        if cluster.ready.is_empty() {
            self.active.remove(c);
        }
        let launch = cluster.launch;
        if !waits_on {
            self.waiting.ends(self.world.clock());
        }
        match outcome {
            Ok(Outcome::Nothing) => {}
            Ok(Outcome::BlockTriggered) => self.triggered(launch, 1),
            Ok(Outcome::ClusterEnded { untriggered }) => self.cluster_ended(c, untriggered),
            Err(violation) => {
                return Err(match &self.clusters[c] {
                    Some(cluster) => self.scene().fault(cluster, t, violation),
                    None => self.scene().deadlock(self.clusters.iter().flatten()),
                });
            }
        }
        Ok(true)
    }

    fn triggered(&mut self, launch: usize, blocks: u32) {
        self.queues.triggered(launch, blocks);
        self.begin_launches();
    }

    fn cluster_ended(&mut self, c: usize, untriggered: u32) {
        let Some(cluster) = self.clusters[c].take() else { return };
        self.active.remove(c);
        for thread in cluster.threads {
            let slot = thread.fiber.slot();
            drop(thread.fiber);
            self.stacks.give_back(slot);
        }
        self.report.clusters += 1;
        if self.queues.cluster_ended(cluster.launch) {
            self.launch_ended(cluster.launch);
        }
        self.triggered(cluster.launch, untriggered);
    }

    fn launch_ended(&mut self, launch: usize) {
        if let Some(delivery) = &self.world.delivery {
            delivery.arrive(launch);
        }
        let Some(next) = self.queues.launches[launch].next else { return };
        // It has itself waited for those before it, so all of them have ended.
        self.views[next].open.set(true);
        for c in 0..self.clusters.len() {
            if let Some(cluster) = self.clusters[c].as_mut().filter(|cluster| cluster.launch == next) {
                cluster.open();
                if !cluster.ready.is_empty() {
                    self.active.insert(c);
                }
            }
        }
    }

    fn scene(&self) -> diagnosis::Scene<'_> {
        diagnosis::Scene { launches: self.launches, order: self.chooser.order }
    }

    fn begin_launches(&mut self) {
        // A launch without blocks lets the one behind it begin.
        loop {
            let ended = self.queues.begin(self.world.clock(), &mut self.chooser);
            if ended.is_empty() {
                return;
            }
            ended.into_iter().for_each(|i| self.launch_ended(i));
        }
    }

    /// Begins a cluster of a launch that has some left; false if none has.
    fn begin_cluster(&mut self) -> Result<bool, SimError> {
        let Some((i, index)) = self.queues.next_cluster(&mut self.chooser) else { return Ok(false) };
        let launch = &self.launches[i];
        let per_row = launch.grid.0 / launch.cluster;
        let block = (index % per_row * launch.cluster, index / per_row);
        let threads = launch.threads as usize;
        let mut fibers = Vec::with_capacity(threads * launch.cluster as usize);
        for rank in 0..launch.cluster {
            for thread in 0..launch.threads {
                fibers.push(self.spawn(i, (block.0 + rank, block.1), rank, thread)?);
            }
        }
        let cursor = if self.chooser.order == Order::Reverse { usize::MAX } else { 0 };
        let cluster = Cluster::new(i, threads, fibers, cursor);
        let free = self.clusters.iter().position(Option::is_none).unwrap_or(self.clusters.len());
        if free == self.clusters.len() {
            self.clusters.push(None);
            self.active.grow(free + 1);
        }
        self.clusters[free] = Some(cluster);
        self.active.insert(free);
        Ok(true)
    }

    fn spawn(
        &mut self,
        launch: usize,
        block: (u32, u32),
        cluster_rank: u32,
        thread: u32,
    ) -> Result<Fiber, SimError> {
        let library = &self.launches[launch].library;
        let slot = self.stacks.take(library.stack_bytes()).map_err(|e| SimError::Memory {
            pattern: library.pattern().to_owned(),
            fibers: e.fibers,
            available: e.available,
        })?;
        let position = Position {
            thread,
            block: block.0,
            blocks: self.launches[launch].grid.0,
            grid_row: block.1,
            cluster_rank,
            threads: self.launches[launch].threads,
        };
        // SAFETY: the world is boxed, the views are as many as they ever will be, and both are dropped after the fibers.
        let context = unsafe { Context::new(position, &self.world, &self.views[launch]) };
        // SAFETY: the slot is one of these stacks, was free, and has the size that the library was built for; stacks, world, views
        // and library outlive the fibers (see the order of the fields); the arguments outlive the machine.
        Ok(unsafe {
            Fiber::spawn(
                slot,
                context,
                self.queues.launches[launch].entry,
                self.launches[launch].args.as_ptr(),
            )
        })
    }

    /// Wakes threads whose memory has changed; when time has passed, all that wait for memory.
    fn wake_polls(&mut self, time_has_passed: bool) -> bool {
        // All of them, not up to the first that wakes.
        (0..self.clusters.len()).filter(|&c| self.wake_polls_of(c, time_has_passed)).count() > 0
    }

    fn wake_polls_of(&mut self, c: usize, time_has_passed: bool) -> bool {
        let Some(cluster) = &mut self.clusters[c] else { return false };
        let woken = !cluster.polling.is_empty() && cluster.wake_polls(time_has_passed);
        if woken {
            self.active.insert(c);
        }
        woken
    }

    /// Wakes some of the threads that sleep; false if none does.
    fn wake_sleepers(&mut self) -> bool {
        // A few at a time: each should outlast as much as it can, and many must not take as many rounds.
        let some = self.sleepers.len().div_ceil(8);
        for _ in 0..some {
            let chosen = self.chooser.below(self.sleepers.len());
            let (c, t) = self.sleepers.swap_remove(chosen);
            if let Some(cluster) = &mut self.clusters[c] {
                cluster.wake(t);
                self.active.insert(c);
            }
        }
        some > 0
    }

    /// All wait for memory: lets a store arrive that is under way; false if none is.
    fn deliver(&mut self) -> bool {
        self.world.delivery.as_ref().is_some_and(|d| d.advance())
    }

    /// All wait: moves the clock. False if nothing is left to run.
    fn pass_time(&mut self) -> Result<bool, SimError> {
        let now = self.world.clock();
        let late = self.queues.next_start(now);
        let polling = self.clusters.iter().flatten().any(|c| !c.polling.is_empty());
        let bounded = self.waiting.is_bounded(now, self.world.clock_reads());
        if late.is_none() && !(polling && bounded) {
            return match self.queues.all_ended() {
                true => Ok(false),
                false => Err(self.scene().deadlock(self.clusters.iter().flatten())),
            };
        }
        self.world.set_clock(self.waiting.tick(now).min(late.unwrap_or(u64::MAX)));
        self.begin_launches();
        self.wake_polls(true);
        Ok(true)
    }
}
