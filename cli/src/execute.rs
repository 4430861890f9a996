//! Runs a program once, on whatever a group of ranks stands for.

use anyhow::Result;
use seamline::testing::{Ran, Runner, Workload};
use seamline::{Graph, Prepare, Rank};
use seamline_codegen::Program;
use std::time::Duration;

/// A run, and how long it took to get there.
pub struct Executed {
    pub ran: Ran,
    pub prepared_in: Duration,
}

/// Prepares `graph` on `ranks`, which are a whole group, for the dims of `program`, and launches `workload` once.
pub fn execute(
    graph: &'static Graph,
    program: &Program,
    ranks: &[Rank],
    workload: &Workload,
) -> Result<Executed> {
    let mut options = Prepare::new(workload.tokens()).hidden(program.dims.hidden).dtype(program.dims.dtype);
    if graph.has_top_k() {
        options = options.top_k(program.dims.top_k);
    }
    let runner = Runner::new(graph, ranks, &options)?;
    Ok(Executed { ran: runner.run(program, workload)?, prepared_in: runner.prepared_in() })
}
