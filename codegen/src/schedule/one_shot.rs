//! `one_shot`: each rank pushes its partial row to all, polls its own memory, and adds. One hop, N - 1 rows sent.

use super::layout::wire_row_bytes;
use super::{Layout, Part, Schedule, ScheduleDef, Traffic};
use crate::Program;

pub(super) static DEF: ScheduleDef = ScheduleDef {
    schedule: Schedule::OneShot,
    name: "one_shot",
    hops: 1,
    waves: true,
    registers: 56,
    refusal,
    shape: |rows, tokens| rows.polling(tokens),
    most: |rows| rows.most_polling(),
    layout,
    traffic,
};

fn refusal(program: &Program) -> Option<&'static str> {
    (!program.exchanges())
        .then_some("it exchanges nothing, without a collective or a second rank: take `local`")
}

/// A wire row of every rank.
fn layout(program: &Program) -> Layout {
    let row = Part { piece_bytes: wire_row_bytes(program), pieces: 1 };
    Layout { ranks: program.dims.ranks, parts: vec![row] }
}

fn traffic(program: &Program, _rank: u32) -> Traffic {
    let bytes = u64::from(program.dims.ranks - 1) * wire_row_bytes(program);
    Traffic { sent: bytes, received: bytes }
}
