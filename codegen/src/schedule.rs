//! Schedules and their launch geometry: pure functions of program, device, tokens, and what shares the device.

use crate::program::Inst;
use crate::{MAX_TOKENS, Program, phases::Phases};

/// One way to run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Schedule {
    /// One rank: one pass over memory.
    Local,
    /// Each rank pushes its partial row to all, and polls its own memory.
    OneShot,
}

impl Schedule {
    /// Its name in commands, messages and entry points.
    pub const fn name(self) -> &'static str {
        match self {
            Schedule::Local => "local",
            Schedule::OneShot => "one_shot",
        }
    }
}

/// How an entry deals rows to threads. Compile-time constants of the generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// The schedule.
    pub schedule: Schedule,
    /// CTAs of the cluster that shares a row.
    pub ctas: u32,
    /// Threads of a CTA.
    pub threads: u32,
    /// Lanes of 8 channels per thread.
    pub vectors: u32,
    /// Rows that finalize asks for at once.
    pub batch: u32,
    /// CTAs that should fit on one SM; bounds the registers.
    pub blocks_per_sm: u32,
    /// Whether outputs are stored past the cache.
    pub streaming: bool,
    /// Whether a cluster takes several tokens, sending all before it receives any.
    pub waves: bool,
}

/// What ranks must have in common of their devices; geometry depends on the multiprocessors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceModel {
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Multiprocessors: those that the context may use.
    pub sms: u32,
}

impl DeviceModel {
    /// What is assumed where there is no device: the simulator, and `show`.
    pub const H200: DeviceModel = DeviceModel { capability: (9, 0), sms: 132 };
}

/// How the tokens of one call are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// The geometry.
    pub geometry: Geometry,
    /// Clusters of the grid.
    pub clusters: u32,
}

/// The tokens that a geometry serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub from: u64,
    /// The most.
    pub up_to: u64,
    /// The geometry.
    pub geometry: Geometry,
}

/// Tokens that exchange memory holds by default. A longer launch of `one_shot` runs as several kernels.
pub const EXCHANGE_TOKENS: u64 = 128;

/// How many launches must find room on a device at once: one of each rank there, of the group and of each of its
/// `forks`.
///
/// A successor that starts early starts when all of its predecessor runs; but it may take the room of another's
/// predecessor.
pub const fn launches_at_once(ranks_per_device: u32, forks: u32, early_trigger: bool) -> u32 {
    match (ranks_per_device.saturating_mul(forks.saturating_add(1)), early_trigger) {
        (launches, true) if launches > 1 => launches.saturating_mul(2),
        (launches, _) => launches,
    }
}

/// Decides geometries.
#[derive(Clone, Debug)]
pub struct Planner<'a> {
    program: &'a Program,
    device: DeviceModel,
    /// Ranks that share the device.
    ranks_per_device: u32,
    /// Groups beside this one whose launches are in no order with its own.
    forks: u32,
    /// Whether the successor of a launch may start while it runs, and take room beside it.
    early_trigger: bool,
    crosses_exchange: bool,
}

const WARP: u32 = 32;
/// Channels of a lane: what a thread works on.
pub(crate) const LANE: u32 = 8;
const MAX_THREADS: u32 = 1024;
/// Registers of an SM.
const REGISTERS: u32 = 65_536;

impl<'a> Planner<'a> {
    /// A planner for `program` on `device`, of a group without forks.
    pub fn new(
        program: &'a Program,
        device: DeviceModel,
        ranks_per_device: u32,
        early_trigger: bool,
    ) -> Self {
        let crosses_exchange = Phases::of(program).crosses_exchange(program);
        Planner { program, device, ranks_per_device, forks: 0, early_trigger, crosses_exchange }
    }

    /// For a group with `forks` forks.
    #[must_use]
    pub fn with_forks(self, forks: u32) -> Self {
        Planner { forks, ..self }
    }

    /// The schedule that runs the program.
    pub fn schedule(&self) -> Schedule {
        match self.program.exchanges() {
            true => Schedule::OneShot,
            false => Schedule::Local,
        }
    }

    /// The shape of a launch of `tokens` tokens, 1 to [`MAX_TOKENS`]; what is outside is taken as the nearest.
    pub fn shape(&self, tokens: u64) -> LaunchShape {
        let tokens = tokens.clamp(1, MAX_TOKENS);
        match self.schedule() {
            Schedule::Local => self.local(tokens),
            Schedule::OneShot => self.one_shot(tokens),
        }
    }

    /// The most tokens that one launch takes, whatever the region holds.
    pub fn tokens_per_launch(&self) -> u64 {
        match (self.schedule(), self.crosses_exchange) {
            (Schedule::Local, _) | (Schedule::OneShot, false) => MAX_TOKENS,
            (Schedule::OneShot, true) => self.resident(&self.wide(1)).min(MAX_TOKENS),
        }
    }

    /// Every geometry that a launch of up to `max_tokens` tokens may take, without repetition.
    pub fn geometries(&self, max_tokens: u64) -> Vec<Geometry> {
        self.ranges(max_tokens).into_iter().map(|range| range.geometry).collect()
    }

    /// What geometry serves which tokens, up to `max_tokens`, in order.
    pub fn ranges(&self, max_tokens: u64) -> Vec<Range> {
        let max_tokens = max_tokens.min(MAX_TOKENS);
        let mut ranges = Vec::new();
        let mut from = 1;
        while from <= max_tokens {
            // A geometry serves one range of tokens, so a bisection finds its end.
            let geometry = self.shape(from).geometry;
            let (mut up_to, mut beyond) = (from, max_tokens + 1);
            while beyond - up_to > 1 {
                let middle = up_to + (beyond - up_to) / 2;
                match self.shape(middle).geometry == geometry {
                    true => up_to = middle,
                    false => beyond = middle,
                }
            }
            ranges.push(Range { from, up_to, geometry });
            from = up_to + 1;
        }
        ranges
    }

    fn lanes(&self) -> u32 {
        self.program.dims.hidden.div_ceil(LANE)
    }

    /// Bytes of an element of the widest rows that are finalized.
    fn row_bytes(&self) -> u32 {
        let rows = self.program.lines.iter().filter_map(|line| match line.inst {
            Inst::Gather { rows, .. } => Some(self.program.param_dtype(rows).size() as u32),
            _ => None,
        });
        rows.max().unwrap_or(2)
    }

    /// Deals a row over at most `ctas` CTAs of at most `most` threads, `blocks_per_sm` of them on an SM.
    fn deal(&self, ctas: u32, most: u32, blocks_per_sm: u32, streaming: bool) -> Geometry {
        let lanes = self.lanes();
        let vectors = lanes.div_ceil(ctas * most);
        let threads = lanes.div_ceil(ctas * vectors).next_multiple_of(WARP);
        // What a thread may hold decides how many rows it asks for at once.
        let registers = (REGISTERS / (threads * blocks_per_sm)).min(255);
        let row_registers = LANE * self.row_bytes() / 4;
        // Besides the rows; a further lane keeps about half as much as the first.
        let others = match self.schedule() {
            Schedule::Local => 40,
            Schedule::OneShot => 56,
        } * (vectors + 1)
            / 2;
        let batch = (registers.saturating_sub(others) / row_registers).clamp(1, 16);
        Geometry {
            schedule: self.schedule(),
            // Rounding threads up to warps may leave CTAs without a lane.
            ctas: lanes.div_ceil(threads * vectors),
            threads,
            vectors,
            batch: self.program.dims.top_k.clamp(1, batch),
            blocks_per_sm,
            streaming,
            waves: false,
        }
    }

    /// A row as wide as it goes: one lane per thread where `ctas` CTAs can hold it.
    fn wide(&self, ctas: u32) -> Geometry {
        let threads = self.lanes().div_ceil(ctas).next_multiple_of(WARP).min(MAX_THREADS);
        self.deal(ctas, MAX_THREADS, (512 / threads).clamp(1, 8), false)
    }

    /// A row on one CTA, for bandwidth: two CTAs of half an SM's threads, so that one loads while the other reduces.
    fn narrow(&self) -> Geometry {
        let lanes = self.lanes();
        let most = if lanes.div_ceil(2) <= 512 { 512 } else { MAX_THREADS };
        let vectors = if lanes <= 256 { 1 } else { lanes.div_ceil(most).max(2) };
        let threads = lanes.div_ceil(vectors).next_multiple_of(WARP);
        self.deal(1, threads, (1024 / threads).max(1), true)
    }

    /// Clusters of `geometry` that one launch has room for beside all others. `__launch_bounds__` makes the compiler
    /// keep `blocks_per_sm`.
    ///
    /// A fork's launches may be of any other kernel, and how many CTAs of two kernels fit beside each other depends on
    /// where each has gone. So all of them together are one CTA per SM at most: as long as one is not placed, an SM is
    /// idle, and whatever it is, it fits there. A cluster wants its SMs near each other, and finds them in what is left
    /// over.
    fn room(&self, geometry: &Geometry) -> u64 {
        let share = u64::from(launches_at_once(self.ranks_per_device, self.forks, self.early_trigger));
        // A cluster lies within a GPC, whose SMs come in pairs, unless a fork's CTAs have broken them up; larger clusters
        // may leave some of them over.
        let (per_sm, tiles) = if self.forks == 0 { (geometry.blocks_per_sm, 2) } else { (1, 1) };
        let ctas = u64::from(self.device.sms) * u64::from(per_sm);
        let usable = if geometry.ctas > tiles { ctas - ctas / 8 } else { ctas };
        usable / u64::from(geometry.ctas) / share.max(1)
    }

    /// Clusters of `geometry` that one launch may have. One at least: the runtime refuses what has no room.
    fn resident(&self, geometry: &Geometry) -> u64 {
        self.room(geometry).max(1)
    }

    /// The widest row that leaves an eighth of the room for two CTAs per SM free, so that clusters find their place.
    fn widest(&self, tokens: u64, fits: impl Fn(&Geometry) -> bool) -> Option<Geometry> {
        let room = 7 * u64::from(self.device.sms);
        let quarters = |g: &Geometry| 4 * u64::from(g.ctas) * u64::from(self.ranks_per_device);
        [8, 4, 2, 1]
            .into_iter()
            .map(|ctas| self.wide(ctas))
            .find(|g| tokens.saturating_mul(quarters(g)) <= room && fits(g))
    }

    fn local(&self, tokens: u64) -> LaunchShape {
        let geometry = self.widest(tokens, |g| g.ctas > 1).unwrap_or_else(|| self.narrow());
        LaunchShape { geometry, clusters: tokens as u32 }
    }

    fn one_shot(&self, tokens: u64) -> LaunchShape {
        if let Some(geometry) = self.widest(tokens, |g| tokens <= self.room(g)) {
            return LaunchShape { geometry, clusters: tokens as u32 };
        }
        let geometry = self.wide(1);
        let clusters = self.resident(&geometry).min(tokens);
        LaunchShape { geometry: Geometry { waves: clusters < tokens, ..geometry }, clusters: clusters as u32 }
    }
}
