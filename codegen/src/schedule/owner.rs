//! `owner`: block b of a row's blocks of 256 channels belongs to rank b mod N. Slices go to their owners, who add them and
//! publish the sums in f32. Two hops, and about (N - 1) / N of a wire row and of a row of f32 sent, whatever N.

use super::layout::wire_row_bytes;
use super::{LANE, Layout, Part, Schedule, ScheduleDef, Traffic};
use crate::{DType, Program};

pub(super) static DEF: ScheduleDef = ScheduleDef {
    schedule: Schedule::Owner,
    name: "owner",
    hops: 2,
    waves: true,
    registers: 56,
    refusal,
    shape: |rows, tokens| rows.polling(tokens),
    most: |rows| rows.most_polling(),
    layout,
    traffic,
};

/// Channels of a warp: what one rank owns of a row at a time.
const BLOCK: u64 = 32 * LANE as u64;
/// Sums travel as they are.
const SUM: DType = DType::F32;

/// Of a row; the last may be ragged.
fn blocks(program: &Program) -> u64 {
    u64::from(program.dims.hidden).div_ceil(BLOCK)
}

fn refusal(program: &Program) -> Option<&'static str> {
    (!program.exchanges())
        .then_some("it exchanges nothing, without a collective or a second rank: take `local`")
}

/// Slices of the blocks that a rank owns, one of every rank; then the sums of all blocks. Rows are filled up to the same
/// number of blocks for every rank.
fn layout(program: &Program) -> Layout {
    let pieces = blocks(program).div_ceil(u64::from(program.dims.ranks));
    let part = |dtype: DType| Part { piece_bytes: BLOCK * dtype.size() as u64, pieces };
    Layout { ranks: program.dims.ranks, parts: vec![part(program.dims.wire), part(SUM)] }
}

fn traffic(program: &Program, rank: u32) -> Traffic {
    let (ranks, wire) = (u64::from(program.dims.ranks), program.dims.wire.size() as u64);
    let row = wire_row_bytes(program) / wire;
    let block = |b: u64| (row - b * BLOCK).min(BLOCK);
    let own: u64 = (u64::from(rank)..blocks(program)).step_by(ranks as usize).map(block).sum();
    let (others, sum) = (row - own, SUM.size() as u64);
    Traffic {
        sent: others * wire + (ranks - 1) * own * sum,
        received: (ranks - 1) * own * wire + others * sum,
    }
}
