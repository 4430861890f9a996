//! The reference executor and the workloads, from outside.
#![cfg(feature = "reference")]

mod accuracy;
mod contract;
mod errors;
mod graphs;
mod literal;
mod workloads;

use seamline_codegen::Program;
use seamline_codegen::reference::{self, RankOutputs};
use seamline_codegen::workload::{Kind, Workload};

/// Runs `program` on a workload.
fn run(program: &Program, tokens: usize, seed: u64, kind: Kind) -> Vec<RankOutputs> {
    let workload = Workload::new(program, tokens, seed, kind);
    reference::run(program, &workload.inputs(), tokens).unwrap()
}
