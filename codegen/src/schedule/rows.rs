//! How a row is dealt over CTAs and threads: the heuristics that schedules choose from.

use super::{DeviceModel, Geometry, LaunchShape, Schedule};
use crate::program::Inst;
use crate::{MAX_TOKENS, Program};

const WARP: u32 = 32;
/// Channels of a lane: what a thread works on.
pub(crate) const LANE: u32 = 8;
const MAX_THREADS: u32 = 1024;
/// Registers of an SM.
const REGISTERS: u32 = 65_536;

/// Rows of a program, as one schedule runs them on a device.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    pub(super) program: &'a Program,
    pub(super) schedule: Schedule,
    pub(super) device: DeviceModel,
    /// Ranks that share the device.
    pub(super) ranks_per_device: u32,
    /// Groups beside this one whose launches are in no order with its own.
    pub(super) forks: u32,
    /// Whether the successor of a launch may start while it runs, and take room beside it.
    pub(super) early_trigger: bool,
    /// Whether a thread keeps something of a row from before the exchange to after it, so that it can have one row only.
    pub(super) crosses_exchange: bool,
}

impl Rows<'_> {
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
        let others = self.schedule.def().registers * (vectors + 1) / 2;
        let batch = (registers.saturating_sub(others) / row_registers).clamp(1, 16);
        Geometry {
            schedule: self.schedule,
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
    pub(super) fn wide(&self, ctas: u32) -> Geometry {
        let threads = self.lanes().div_ceil(ctas).next_multiple_of(WARP).min(MAX_THREADS);
        self.deal(ctas, MAX_THREADS, (512 / threads).clamp(1, 8), false)
    }

    /// A row on one CTA, for bandwidth: two CTAs of half an SM's threads, so that one loads while the other reduces.
    pub(super) fn narrow(&self) -> Geometry {
        let lanes = self.lanes();
        let most = if lanes.div_ceil(2) <= 512 { 512 } else { MAX_THREADS };
        let vectors = if lanes <= 256 { 1 } else { lanes.div_ceil(most).max(2) };
        let threads = lanes.div_ceil(vectors).next_multiple_of(WARP);
        self.deal(1, threads, (1024 / threads).max(1), true)
    }

    /// The widest row that leaves an eighth of the room for two CTAs per SM free, so that clusters find their place.
    pub(super) fn widest(&self, tokens: u64, fits: impl Fn(&Geometry) -> bool) -> Option<Geometry> {
        let room = 7 * u64::from(self.device.sms);
        let quarters = |g: &Geometry| 4 * u64::from(g.ctas) * u64::from(self.ranks_per_device);
        [8, 4, 2, 1]
            .into_iter()
            .map(|ctas| self.wide(ctas))
            .find(|g| tokens.saturating_mul(quarters(g)) <= room && fits(g))
    }

    /// Rows that poll: all that are launched are resident. Beyond what has room a cluster takes several tokens.
    pub(super) fn polling(&self, tokens: u64) -> LaunchShape {
        if let Some(geometry) = self.widest(tokens, |g| tokens <= self.room(g)) {
            return LaunchShape { geometry, clusters: tokens as u32 };
        }
        let geometry = self.wide(1);
        let clusters = self.resident(&geometry).min(tokens);
        LaunchShape { geometry: Geometry { waves: clusters < tokens, ..geometry }, clusters: clusters as u32 }
    }

    /// The most tokens of a launch whose rows poll.
    pub(super) fn most_polling(&self) -> u64 {
        match self.crosses_exchange {
            false => MAX_TOKENS,
            true => self.resident(&self.wide(1)).min(MAX_TOKENS),
        }
    }
}
