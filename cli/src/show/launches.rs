//! Which launch a number of tokens becomes.

use super::bytes::{self, Moved};
use crate::table::Table;
use seamline_codegen::program::Program;
use seamline_codegen::schedule::{EXCHANGE_TOKENS, Geometry, LaunchShape, Planner};
use serde::Serialize;

/// The launch for some number of tokens.
#[derive(Serialize)]
pub struct Launch {
    tokens: u64,
    /// One after the other, of `tokens_per_launch` each but for the last.
    launches: u64,
    tokens_per_launch: u64,
    schedule: &'static str,
    clusters: u32,
    ctas: u32,
    threads: u32,
    vectors: u32,
    batch: u32,
    streaming: bool,
    waves: bool,
    #[serde(flatten)]
    moved: Moved,
}

impl Launch {
    pub fn new(program: &Program, planner: &Planner<'_>, tokens: u64) -> Launch {
        let tokens_per_launch = most(planner).min(tokens);
        let LaunchShape { geometry, clusters, .. } = planner.shape(tokens_per_launch);
        let Geometry { schedule, ctas, threads, vectors, batch, streaming, waves, .. } = geometry;
        Launch {
            tokens,
            launches: tokens.div_ceil(tokens_per_launch),
            tokens_per_launch,
            schedule: schedule.name(),
            clusters,
            ctas,
            threads,
            vectors,
            batch,
            streaming,
            waves,
            moved: Moved::new(program, tokens),
        }
    }
}

/// Tokens of one launch, with exchange memory of the default size.
pub fn most(planner: &Planner<'_>) -> u64 {
    match planner.schedules().iter().any(|(_, schedule)| schedule.def().hops > 0) {
        true => planner.tokens_per_launch().min(EXCHANGE_TOKENS),
        false => planner.tokens_per_launch(),
    }
}

/// One row per number of tokens.
pub fn table(launches: &[Launch]) -> Table {
    let mut table = Table::new(&[
        "T",
        "schedule",
        "clusters",
        "CTAs",
        "threads",
        "vectors",
        "rows at once",
        "moved",
        "sent",
        "floor",
        "notes",
    ]);
    for launch in launches {
        let several = format!("{} launches, of {} tokens at most", launch.launches, launch.tokens_per_launch);
        let notes = [
            (launch.streaming, "streaming stores"),
            (launch.waves, "several tokens a cluster"),
            (launch.launches > 1, &several),
        ];
        let notes = notes.iter().filter(|(on, _)| *on).map(|(_, note)| *note).collect::<Vec<_>>().join(", ");
        table.row([
            launch.tokens.to_string(),
            launch.schedule.to_owned(),
            launch.clusters.to_string(),
            launch.ctas.to_string(),
            launch.threads.to_string(),
            launch.vectors.to_string(),
            launch.batch.to_string(),
            bytes::text(launch.moved.bytes),
            bytes::text(launch.moved.sent_bytes),
            format!("{:.2} us", launch.moved.floor_us),
            notes,
        ]);
    }
    table
}
