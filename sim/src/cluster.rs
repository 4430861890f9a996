//! A cluster that runs: its threads, what each waits for, and the barriers between them.

use crate::bits::Bits;
use crate::error::Fault;
use crate::fiber::Fiber;
use crate::mbarrier::{Call, Mbarrier};
use crate::races::Touch;
use crate::shared::{Area, LIMIT, Layout};
use crate::thread::{Barrier, Broken, Place, Request};
use std::collections::BTreeMap;

/// Threads of a warp.
pub(crate) const WARP: usize = 32;

/// Looks that a thread is granted when time has passed: enough to come by its next look at the clock.
const GRANTED: u32 = 2048;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Its turn.
    Turn,
    Block,
    Cluster,
    /// At the mbarrier there in its shared memory.
    Mbarrier {
        offset: u64,
        parity: u32,
    },
    Grid,
    Shuffle {
        bits: u32,
        from: u32,
    },
    Poll,
    Word {
        address: u64,
        seen: u32,
    },
    /// The order's whim.
    Asleep,
    Ended,
}

pub(crate) struct Thread {
    pub fiber: Fiber,
    pub wait: Wait,
    /// The phase of the cluster barrier in which it has arrived and not yet waited.
    arrived: Option<u32>,
    /// It has come through a cluster barrier: every block of the cluster runs.
    cluster_runs: bool,
}

#[derive(Default)]
struct Block {
    at_barrier: u32,
    alive: u32,
    waited: bool,
    triggered: bool,
    shared: Area,
    /// By their place in shared memory.
    mbarriers: BTreeMap<u64, Mbarrier>,
}

pub(crate) struct Cluster {
    pub launch: usize,
    /// Block by block.
    pub threads: Vec<Thread>,
    per_block: usize,
    blocks: Vec<Block>,
    /// Threads that can run.
    pub ready: Bits,
    /// Threads that wait for memory.
    pub polling: Bits,
    /// Where the order looks next.
    pub cursor: usize,
    alive: u32,
    arrivals: u32,
    phase: u32,
}

/// What the machine must know of a request.
pub(crate) enum Outcome {
    Nothing,
    /// A block has told that the dependents of its launch may begin.
    BlockTriggered,
    /// Every thread has ended; blocks that never triggered have done so now.
    ClusterEnded {
        untriggered: u32,
    },
}

impl Cluster {
    pub fn new(launch: usize, per_block: usize, fibers: Vec<Fiber>, cursor: usize) -> Cluster {
        let len = fibers.len();
        let mut ready = Bits::with_capacity(len);
        (0..len).for_each(|t| ready.insert(t));
        let thread = |fiber| Thread { fiber, wait: Wait::Turn, arrived: None, cluster_runs: false };
        let alive = per_block as u32;
        Cluster {
            launch,
            threads: fibers.into_iter().map(thread).collect(),
            per_block,
            blocks: (0..len / per_block).map(|_| Block { alive, ..Block::default() }).collect(),
            ready,
            polling: Bits::with_capacity(len),
            cursor,
            alive: len as u32,
            arrivals: 0,
            phase: 0,
        }
    }

    pub fn place(&self, t: usize) -> Place {
        self.threads[t].fiber.context().place.get()
    }

    /// Does what thread `t` asks.
    pub fn handle(&mut self, t: usize, request: Request, layout: &mut Layout) -> Result<Outcome, Violation> {
        match request {
            // Whether it sleeps is the machine's to say.
            Request::Pause => {}
            Request::Barrier(barrier) => return self.barrier(t, barrier),
            Request::Shuffle { bits, from } => self.shuffle(t, bits, from)?,
            Request::Poll => self.poll(t, Wait::Poll),
            Request::Word { address, seen } => self.poll(t, Wait::Word { address, seen }),
            Request::Shared { tag, bytes } => {
                let piece =
                    layout.piece(tag, bytes).map_err(|bytes| Fault::SharedMemory { bytes, limit: LIMIT })?;
                let area = &mut self.blocks[t / self.per_block].shared;
                let context = self.threads[t].fiber.context();
                context.answer.set(area.address(layout, piece));
                context.shadow.set(&*area.shadow);
            }
            Request::Mbarrier { call, address, operand } => {
                self.mbarrier(t, call, address, operand, layout)?
            }
            Request::StoreAsync { address, barrier, rank, bits } => {
                self.store_async(t, address, barrier, rank, bits, layout)?
            }
            Request::Fault(broken) => return Err(Violation::Broken(broken)),
        }
        Ok(Outcome::Nothing)
    }

    fn suspend(&mut self, t: usize, wait: Wait) {
        self.threads[t].wait = wait;
        self.ready.remove(t);
    }

    fn poll(&mut self, t: usize, wait: Wait) {
        self.suspend(t, wait);
        self.polling.insert(t);
    }

    /// Until the machine wakes it.
    pub fn sleep(&mut self, t: usize) {
        self.suspend(t, Wait::Asleep);
    }

    pub fn wake(&mut self, t: usize) {
        self.threads[t].wait = Wait::Turn;
        self.ready.insert(t);
    }

    fn block_of(&self, t: usize) -> std::ops::Range<usize> {
        let first = t / self.per_block * self.per_block;
        first..first + self.per_block
    }

    fn warp_of(&self, t: usize) -> std::ops::Range<usize> {
        let block = self.block_of(t);
        let first = block.start + (t - block.start) / WARP * WARP;
        first..(first + WARP).min(block.end)
    }

    fn barrier(&mut self, t: usize, barrier: Barrier) -> Result<Outcome, Violation> {
        let block = t / self.per_block;
        match barrier {
            Barrier::Block => {
                self.suspend(t, Wait::Block);
                self.blocks[block].at_barrier += 1;
                self.aligned(t, Wait::Block, "block_barrier")?;
                if self.blocks[block].at_barrier == self.per_block as u32 {
                    self.blocks[block].at_barrier = 0;
                    self.block_of(t).for_each(|t| self.wake(t));
                }
            }
            Barrier::ClusterArriveRelaxed | Barrier::ClusterArrive => {
                if self.threads[t].arrived.replace(self.phase).is_some() {
                    return Err(Fault::ArrivesTwice.into());
                }
                self.arrivals += 1;
                self.close_phase();
            }
            Barrier::ClusterWait => {
                let arrived = self.threads[t].arrived.take().ok_or(Fault::WaitsUnarrived)?;
                self.threads[t].cluster_runs = true;
                if arrived == self.phase {
                    self.suspend(t, Wait::Cluster);
                    self.aligned(t, Wait::Cluster, "cluster_wait")?;
                }
            }
            Barrier::GridWait => self.suspend(t, Wait::Grid),
            Barrier::GridLaunchDependents => {
                if !self.threads[t].fiber.context().waited.get() {
                    return Err(Fault::TriggersBeforeWait.into());
                }
                if !std::mem::replace(&mut self.blocks[block].triggered, true) {
                    return Ok(Outcome::BlockTriggered);
                }
            }
        }
        Ok(Outcome::Nothing)
    }

    /// The cluster barrier opens when every living thread has arrived.
    fn close_phase(&mut self) {
        if self.arrivals == self.alive && self.alive > 0 {
            self.arrivals = 0;
            self.phase += 1;
            for t in 0..self.threads.len() {
                if self.threads[t].wait == Wait::Cluster {
                    self.wake(t);
                }
            }
        }
    }

    /// `.aligned` barriers are one instruction for a whole warp. It is enough to compare neighbours: of each two, the one that
    /// comes later does.
    fn aligned(&self, t: usize, wait: Wait, primitive: &'static str) -> Result<(), Violation> {
        let warp = self.warp_of(t);
        let neighbours = [t.wrapping_sub(1), t + 1].into_iter().filter(|u| warp.contains(u));
        for u in neighbours.filter(|&u| self.threads[u].wait == wait) {
            if self.place(u).line != self.place(t).line {
                return Err(Violation::Divergent { primitive, other: self.place(u) });
            }
        }
        Ok(())
    }

    fn shuffle(&mut self, t: usize, bits: u32, from: u32) -> Result<(), Violation> {
        if from >= WARP as u32 {
            return Err(Fault::ShuffleLane { lane: from }.into());
        }
        self.suspend(t, Wait::Shuffle { bits, from });
        let warp = self.warp_of(t);
        let mut lanes = [(0, 0); WARP];
        for (lane, u) in lanes.iter_mut().zip(warp.clone()) {
            match self.threads[u].wait {
                Wait::Shuffle { bits, from } => *lane = (bits, from),
                // The last lane to come finds all others.
                _ => return Ok(()),
            }
        }
        for (i, u) in warp.clone().enumerate() {
            // A lane beyond a warp that is not full gives its own value, as an inactive lane does.
            let from = lanes[i].1 as usize;
            let bits = lanes[if from < warp.len() { from } else { i }].0;
            self.threads[u].fiber.context().answer.set(bits.into());
            self.wake(u);
        }
        Ok(())
    }

    /// Where the variable of `bytes` bytes at `address` is, in the shared memory of every block, and which one it is in.
    fn variable(&self, t: usize, address: u64, bytes: u64, layout: &Layout) -> Option<(u64, usize)> {
        let offset = self.blocks[t / self.per_block].shared.offset(address)?;
        let piece = layout.find(offset, bytes)?;
        offset.is_multiple_of(bytes).then_some((offset, piece))
    }

    fn touch(&self, t: usize) -> Touch {
        self.threads[t].fiber.context().touch()
    }

    fn mbarrier(
        &mut self,
        t: usize,
        call: Call,
        address: u64,
        operand: u32,
        layout: &Layout,
    ) -> Result<(), Violation> {
        let none = Fault::SharedAddress { verb: "has an mbarrier in" };
        let (offset, _) = self.variable(t, address, 8, layout).ok_or(none)?;
        let (own, touch) = (t / self.per_block, self.touch(t));
        if call == Call::Init {
            let made = self.blocks[own].mbarriers.insert(offset, Mbarrier::new(touch));
            return if made.is_none() { Ok(()) } else { Err(Fault::MbarrierMadeTwice.into()) };
        }
        let mbarrier = self.blocks[own].mbarriers.get_mut(&offset);
        let mbarrier = mbarrier.filter(|m| m.is_made_for(&touch)).ok_or(Fault::MbarrierUnmade)?;
        if call == Call::Expect {
            if mbarrier.expect(operand)? {
                self.phase_ended(own, offset);
            }
            return Ok(());
        }
        match mbarrier.ended(operand).cloned() {
            Some(known) => self.blocks[own].shared.shadow.learn(touch.thread, &known),
            None => self.suspend(t, Wait::Mbarrier { offset, parity: operand }),
        }
        Ok(())
    }

    /// Wakes those who wait for the phase that the mbarrier at `offset` of `block` has ended.
    fn phase_ended(&mut self, block: usize, offset: u64) {
        let first = block * self.per_block;
        for t in first..first + self.per_block {
            let Wait::Mbarrier { offset: at, parity } = self.threads[t].wait else { continue };
            let Block { mbarriers, shared, .. } = &self.blocks[block];
            if let Some(known) = mbarriers.get(&offset).filter(|_| at == offset).and_then(|m| m.ended(parity))
            {
                shared.shadow.learn(self.touch(t).thread, known);
                self.wake(t);
            }
        }
    }

    fn store_async(
        &mut self,
        t: usize,
        address: u64,
        barrier: u64,
        rank: u32,
        bits: u32,
        layout: &Layout,
    ) -> Result<(), Violation> {
        let size = self.blocks.len() as u32;
        let elsewhere = Fault::ClusterAddress { rank, size };
        let (offset, piece) = self.variable(t, address, 4, layout).ok_or_else(|| elsewhere.clone())?;
        let (counter, _) = self.variable(t, barrier, 8, layout).ok_or_else(|| elsewhere.clone())?;
        if !self.threads[t].cluster_runs && size > 1 {
            return Err(Fault::ClusterNotStarted.into());
        }
        let touch = Touch { counted: true, ..self.touch(t) };
        let known = self.blocks[t / self.per_block].shared.shadow.known(touch.thread);
        let target = self.blocks.get_mut(rank as usize).ok_or(elsewhere)?;
        if target.alive == 0 {
            return Err(Fault::ClusterEnded { rank }.into());
        }
        let mbarrier = target.mbarriers.get_mut(&counter);
        let mbarrier = mbarrier.filter(|m| m.is_made_for(&touch)).ok_or(Fault::MbarrierUnmade)?;
        let stored = target.shared.store(layout, piece, offset, bits, touch, &known);
        stored.map_err(|wrong| Violation::Broken(Broken::Shared("writes", wrong)))?;
        if mbarrier.receive(4, &known.with(&touch))? {
            self.phase_ended(rank as usize, counter);
        }
        Ok(())
    }

    /// What the mbarrier lacks at which thread `t` waits.
    pub fn lacks(&self, t: usize, offset: u64) -> Option<String> {
        self.blocks[t / self.per_block].mbarriers.get(&offset)?.lacks()
    }

    /// Thread `t` has returned.
    pub fn end(&mut self, t: usize) -> Result<Outcome, Violation> {
        self.suspend(t, Wait::Ended);
        let own = t / self.per_block;
        let waiting = self.blocks[own].at_barrier;
        if waiting > 0 {
            let first = self.block_of(t).find(|&u| self.threads[u].wait == Wait::Block).unwrap_or(t);
            return Err(Violation::EndsBeforeBarrier { waiting, other: self.place(first) });
        }
        let block = &mut self.blocks[own];
        block.alive -= 1;
        block.waited |= self.threads[t].fiber.context().waited.get();
        if block.alive == 0 && !block.waited {
            return Err(Fault::NeverWaits.into());
        }
        if let Some(lacks) = block.mbarriers.values().find_map(Mbarrier::lacks).filter(|_| block.alive == 0) {
            return Err(Fault::MbarrierUnfinished { lacks }.into());
        }
        // A barrier of the cluster counts the living.
        self.alive -= 1;
        self.arrivals -= u32::from(self.threads[t].arrived == Some(self.phase));
        self.close_phase();
        Ok(match self.alive {
            0 => Outcome::ClusterEnded {
                untriggered: self.blocks.iter().filter(|b| !b.triggered).count() as u32,
            },
            _ => Outcome::Nothing,
        })
    }

    /// Wakes threads whose memory has changed; when time has passed, all of them, to look at the clock.
    pub fn wake_polls(&mut self, time_has_passed: bool) -> bool {
        let polling = self.polling.iter().collect::<Vec<_>>();
        let mut woken = false;
        for t in polling {
            let changed = match self.threads[t].wait {
                Wait::Poll => self.threads[t].fiber.context().polled.changed(),
                // SAFETY: the thread was allowed to read there, and a launch's memory outlives the run.
                Wait::Word { address, seen } => seen != unsafe { (address as *const u32).read_volatile() },
                _ => true,
            };
            if changed || time_has_passed {
                if !changed {
                    self.threads[t].fiber.context().granted.set(GRANTED);
                }
                self.polling.remove(t);
                self.wake(t);
                woken = true;
            }
        }
        woken
    }

    /// Wakes threads at `grid_wait`.
    pub fn open(&mut self) {
        for t in 0..self.threads.len() {
            if self.threads[t].wait == Wait::Grid {
                self.wake(t);
            }
        }
    }
}

/// What a thread did wrong, before it has been put in words.
pub(crate) enum Violation {
    Broken(Broken),
    Divergent { primitive: &'static str, other: Place },
    EndsBeforeBarrier { waiting: u32, other: Place },
    Plain(Fault),
}

impl From<Fault> for Violation {
    fn from(fault: Fault) -> Self {
        Violation::Plain(fault)
    }
}
