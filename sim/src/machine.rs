//! The machine: runs the clusters of all launches on one OS thread, one fiber at a time.
//!
//! A thread runs until it must wait, so a run is a sequence that the [`Order`] alone decides. Clusters begin when those that
//! run can do no more; all of them may be alive at once, because a kernel that exchanges waits for its peers' blocks.
//! Nothing waits in real time: when all wait, the clock moves on, and a poll that is bounded sees its time expire.

use crate::bits::Bits;
use crate::cluster::{Cluster, Outcome};
use crate::diagnosis;
use crate::error::SimError;
use crate::fiber::{Arena, Fiber};
use crate::launch::Launch;
use crate::library::Entry;
use crate::order::{Chooser, Order};
use crate::shared::Layout;
use crate::thread::{Context, LaunchView, Position, Request};
use crate::world::World;
use crate::{Options, Report};
use std::cell::Cell;
use std::collections::HashMap;

/// Once in so many pauses, a thread sleeps until nobody else can run.
const SLEEP_ONE_IN: usize = 32;
/// How far the clock moves when all wait, at first; then four times as far, until someone gets on.
const FIRST_TICK_NS: u64 = 100_000;
/// A wait that lasts so long, by the machine's clock, has no bound.
const FOR_EVER_NS: u64 = 3_600_000_000_000;
/// Ticks after which a kernel that polls must have looked at the clock.
const TICKS_UNREAD: u32 = 4;

struct State {
    entry: Entry,
    layout: Layout,
    /// When it may begin: a rank may be late.
    start_at: u64,
    /// May begin before its predecessor ends.
    early: bool,
    /// Some of its threads fall asleep. Those of others do not, so that ranks draw far apart.
    sleepy: bool,
    began: bool,
    /// Clusters that have not begun; the last one is next.
    pending: Vec<u32>,
    clusters_alive: usize,
    /// Blocks that let the dependents begin.
    triggered: u32,
    previous: Option<usize>,
    next: Option<usize>,
}

impl State {
    fn ended(&self) -> bool {
        self.began && self.pending.is_empty() && self.clusters_alive == 0
    }
}

pub(crate) struct Machine<'a> {
    launches: &'a [Launch],
    // Fibers point to the world and the views, which therefore never move, and stand on the arena's stacks: dropped in this order.
    clusters: Vec<Option<Cluster>>,
    world: Box<World>,
    views: Vec<LaunchView>,
    states: Vec<State>,
    arena: Arena,
    /// The next launch of each rank that has not begun.
    heads: Vec<Option<usize>>,
    /// Launches with clusters that have not begun.
    pending: Vec<usize>,
    /// Threads that a random order has put to sleep, by cluster and index: they go on when nobody else can.
    sleepers: Vec<(usize, usize)>,
    /// Clusters with a thread that can run.
    active: Bits,
    cursor: usize,
    chooser: Chooser,
    last_progress: u64,
    tick: u64,
    /// Ticks since someone looked at the clock.
    unread: (u64, u32),
    report: Report,
}

impl<'a> Machine<'a> {
    pub fn new(launches: &'a [Launch], options: &Options) -> Result<Machine<'a>, SimError> {
        let mut chooser = Chooser::new(options.order);
        let world = Box::new(World::new(options.order));
        let mut states: Vec<State> = Vec::with_capacity(launches.len());
        let mut heads = Vec::new();
        let mut last = HashMap::new();
        for (i, launch) in launches.iter().enumerate() {
            launch.check()?;
            let previous = last.insert(launch.rank, i);
            match previous {
                Some(j) => states[j].next = Some(i),
                None => heads.push(Some(i)),
            }
            let late = match chooser.perhaps(4) {
                true => 1 << chooser.below(22),
                false => 0,
            };
            let delay =
                options.delays.iter().find(|d| d.0 == launch.rank).map_or(late, |d| d.1.as_nanos() as u64);
            states.push(State {
                entry: launch.library.entry(launch)?,
                layout: Layout::default(),
                start_at: world.clock() + delay,
                early: launch.dependent && chooser.perhaps(2),
                sleepy: chooser.perhaps(2),
                began: false,
                pending: Vec::new(),
                clusters_alive: 0,
                triggered: 0,
                previous,
                next: None,
            });
        }
        let view = |(index, (launch, state)): (usize, (&Launch, &State))| LaunchView {
            index,
            memory: launch.memory.clone(),
            open: Cell::new(state.previous.is_none()),
        };
        let last_progress = world.clock();
        Ok(Machine {
            launches,
            clusters: Vec::new(),
            views: launches.iter().zip(&states).enumerate().map(view).collect(),
            world,
            states,
            arena: Arena::take(),
            heads,
            pending: Vec::new(),
            sleepers: Vec::new(),
            active: Bits::default(),
            cursor: 0,
            chooser,
            last_progress,
            tick: FIRST_TICK_NS,
            unread: (0, 0),
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
        std::mem::take(&mut self.arena).give_back();
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
        let sleepy = self.states[cluster.launch].sleepy;
        if sleepy && matches!(request, Some(Request::Pause)) && self.chooser.perhaps(SLEEP_ONE_IN) {
            cluster.sleep(t);
            self.sleepers.push((c, t));
        }
        let outcome = match request {
            Some(request) => cluster.handle(t, request, &mut self.states[cluster.launch].layout),
            None => cluster.end(t),
        };
        if cluster.ready.is_empty() {
            self.active.remove(c);
        }
        let launch = cluster.launch;
        if !waits_on {
            self.last_progress = self.world.clock();
            self.tick = FIRST_TICK_NS;
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
        self.states[launch].triggered += blocks;
        self.begin_launches();
    }

    fn cluster_ended(&mut self, c: usize, untriggered: u32) {
        let Some(cluster) = self.clusters[c].take() else { return };
        self.active.remove(c);
        for thread in cluster.threads {
            let slot = thread.fiber.slot();
            drop(thread.fiber);
            self.arena.return_slot(slot);
        }
        self.states[cluster.launch].clusters_alive -= 1;
        self.report.clusters += 1;
        if self.states[cluster.launch].ended() {
            self.launch_ended(cluster.launch);
        }
        self.triggered(cluster.launch, untriggered);
    }

    fn launch_ended(&mut self, launch: usize) {
        if let Some(delivery) = &self.world.delivery {
            delivery.arrive(launch);
        }
        let Some(next) = self.states[launch].next else { return };
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

    /// Begins the launches that may: the next one of each rank, and the one behind it.
    fn begin_launches(&mut self) {
        for rank in 0..self.heads.len() {
            while let Some(i) = self.heads[rank].filter(|&i| self.may_begin(i)) {
                let launch = &self.launches[i];
                let clusters = (launch.grid.0 / launch.cluster) as usize * launch.grid.1 as usize;
                let pending = self.chooser.stack(clusters);
                let state = &mut self.states[i];
                (state.began, state.pending) = (true, pending);
                self.heads[rank] = state.next;
                match clusters {
                    0 => self.launch_ended(i),
                    _ => self.pending.push(i),
                }
            }
        }
    }

    fn may_begin(&self, i: usize) -> bool {
        let state = &self.states[i];
        let after = state.previous.is_none_or(|p| {
            let (grid, previous) = (self.launches[p].grid, &self.states[p]);
            previous.ended() || state.early && previous.began && previous.triggered == grid.0 * grid.1
        });
        after && self.world.clock() >= state.start_at
    }

    /// Begins a cluster of a launch that has some left; false if none has.
    fn begin_cluster(&mut self) -> Result<bool, SimError> {
        if self.pending.is_empty() {
            return Ok(false);
        }
        let chosen = self.chooser.one_of(self.pending.len());
        let i = self.pending[chosen];
        let Some(index) = self.states[i].pending.pop() else { return Ok(false) };
        if self.states[i].pending.is_empty() {
            self.pending.remove(chosen);
        }
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
        self.states[i].clusters_alive += 1;
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
        let slot = self.arena.take_slot().map_err(|e| SimError::Memory {
            pattern: self.launches[launch].library.pattern().to_owned(),
            fibers: e.fibers,
            available: e.available,
        })?;
        let position = Position {
            thread,
            block: block.0,
            blocks: self.launches[launch].grid.0,
            grid_row: block.1,
            cluster_rank,
        };
        let context = Context::new(position, &self.world, &self.views[launch]);
        // SAFETY: the slot is this arena's and was free; arena, world, views and library outlive the fibers (see the order of the
        // fields); the arguments outlive the machine; the library was built with the limit on frames.
        Ok(unsafe {
            Fiber::spawn(slot, context, self.states[launch].entry, self.launches[launch].args.as_ptr())
        })
    }

    /// Wakes threads whose memory has changed; when time has passed, all that wait for memory.
    fn wake_polls(&mut self, time_has_passed: bool) -> bool {
        // All of them, not up to the first that wakes.
        (0..self.clusters.len()).fold(false, |woken, c| self.wake_polls_of(c, time_has_passed) || woken)
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
        let late = self.heads.iter().flatten().map(|&i| self.states[i].start_at).filter(|&at| at > now).min();
        let polling = self.clusters.iter().flatten().any(|c| !c.polling.is_empty());
        let unread = match self.unread {
            (reads, ticks) if reads == self.world.clock_reads() => ticks,
            _ => 0,
        };
        let bounded = unread < TICKS_UNREAD && now - self.last_progress < FOR_EVER_NS;
        if late.is_none() && !(polling && bounded) {
            return match self.states.iter().all(State::ended) {
                true => Ok(false),
                false => Err(self.scene().deadlock(self.clusters.iter().flatten())),
            };
        }
        self.unread = (self.world.clock_reads(), unread + 1);
        self.world.set_clock((now + self.tick).min(late.unwrap_or(u64::MAX)));
        self.tick *= 4;
        self.begin_launches();
        self.wake_polls(true);
        Ok(true)
    }
}
