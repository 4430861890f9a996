//! `local`: one rank, one pass over memory. A cluster a token; nothing is exchanged.

use super::{LaunchShape, Layout, Rows, Schedule, ScheduleDef, Traffic};
use crate::{MAX_TOKENS, Program};

pub(super) static DEF: ScheduleDef = ScheduleDef {
    schedule: Schedule::Local,
    name: "local",
    hops: 0,
    waves: false,
    registers: 40,
    refusal,
    shape,
    most: |_| MAX_TOKENS,
    layout: |_| Layout::default(),
    traffic: |_, _| Traffic::default(),
};

fn refusal(program: &Program) -> Option<&'static str> {
    program.exchanges().then_some("its ranks exchange rows: take `one_shot` or `owner`")
}

/// Few tokens are latency, and a row is as wide as it goes; many are bandwidth.
fn shape(rows: &Rows<'_>, tokens: u64) -> LaunchShape {
    let geometry = rows.widest(tokens, |g| g.ctas > 1).unwrap_or_else(|| rows.narrow());
    LaunchShape { geometry, clusters: tokens as u32 }
}
