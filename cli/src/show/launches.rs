//! Which launch a number of tokens becomes.

use crate::table::Table;
use seamline_codegen::schedule::{Geometry, LaunchShape, Planner};
use serde::Serialize;

/// The launch for some number of tokens.
#[derive(Serialize)]
pub struct Launch {
    tokens: u64,
    schedule: &'static str,
    clusters: u32,
    ctas: u32,
    threads: u32,
    vectors: u32,
    batch: u32,
    streaming: bool,
    waves: bool,
}

impl Launch {
    pub fn new(planner: &Planner<'_>, tokens: u64) -> Launch {
        let LaunchShape { geometry, clusters, .. } = planner.shape(tokens);
        let Geometry { schedule, ctas, threads, vectors, batch, streaming, waves, .. } = geometry;
        Launch {
            tokens,
            schedule: schedule.name(),
            clusters,
            ctas,
            threads,
            vectors,
            batch,
            streaming,
            waves,
        }
    }
}

/// One row per launch.
pub fn table(launches: &[Launch]) -> Table {
    let mut table =
        Table::new(&["T", "schedule", "clusters", "CTAs", "threads", "vectors", "rows at once", "notes"]);
    for launch in launches {
        let notes = [(launch.streaming, "streaming stores"), (launch.waves, "several tokens a cluster")];
        let notes = notes.iter().filter(|(on, _)| *on).map(|(_, note)| *note).collect::<Vec<_>>().join(", ");
        table.row([
            launch.tokens.to_string(),
            launch.schedule.to_owned(),
            launch.clusters.to_string(),
            launch.ctas.to_string(),
            launch.threads.to_string(),
            launch.vectors.to_string(),
            launch.batch.to_string(),
            notes,
        ]);
    }
    table
}
