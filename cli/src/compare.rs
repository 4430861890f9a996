//! How close results are: in bits to the reference, in error to f64.

use crate::execute::Ran;
use anyhow::{Context, Result};
use seamline_codegen::Program;
use seamline_codegen::reference::{self, Buffer, RankOutputs, ideal};
use seamline_codegen::workload::Workload;
use serde::Serialize;

/// What a workload should give.
pub struct Expected {
    /// The reference's results, per rank.
    pub exact: Vec<RankOutputs>,
    /// What the same instructions give in f64, per rank and output.
    pub ideal: Vec<Vec<Vec<f64>>>,
}

/// What it gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// How many ranks stored the reference's bits in every output.
    pub equal_ranks: usize,
    pub ranks: usize,
    /// The first difference, in words.
    pub difference: Option<String>,
    /// Per output: relative L2 error against f64, the worst rank's.
    pub errors: Vec<f64>,
}

impl Comparison {
    /// Whether every rank has the reference's bits.
    pub fn is_equal(&self) -> bool {
        self.equal_ranks == self.ranks
    }
}

impl Expected {
    /// Runs the reference, in f32 and in f64.
    pub fn new(program: &Program, workload: &Workload) -> Result<Expected> {
        let inputs = workload.inputs();
        let exact =
            reference::run(program, &inputs, workload.tokens()).context("the reference cannot run")?;
        let ideal =
            ideal::run(program, &inputs, workload.tokens()).context("the reference cannot run in f64")?;
        Ok(Expected { exact, ideal })
    }

    /// Compares what ran with it.
    pub fn compare(&self, program: &Program, ran: &Ran) -> Comparison {
        let mut comparison =
            Comparison { equal_ranks: 0, ranks: self.exact.len(), difference: None, errors: Vec::new() };
        for (rank, (exact, got)) in self.exact.iter().zip(&ran.outputs).enumerate() {
            let differs = |(i, (exact, got)): (usize, (&Buffer, &Buffer))| {
                let place = difference(exact, got, program.dims.hidden as usize)?;
                Some(format!("rank {rank}, {}, {place}", program.outputs[i].name))
            };
            match exact.outputs.iter().zip(got).enumerate().find_map(differs) {
                None => comparison.equal_ranks += 1,
                found => comparison.difference = comparison.difference.or(found),
            }
        }
        for output in 0..program.outputs.len() {
            let error = |(ideal, got): (&Vec<Vec<f64>>, &Vec<Buffer>)| {
                ideal::relative_l2(&got[output], &ideal[output])
            };
            comparison.errors.push(self.ideal.iter().zip(&ran.outputs).map(error).fold(0.0, f64::max));
        }
        comparison
    }
}

/// The first element that differs.
fn difference(exact: &Buffer, got: &Buffer, hidden: usize) -> Option<String> {
    if exact == got {
        return None;
    }
    let size = exact.dtype().size();
    let mut pairs = exact.bytes().chunks(size).zip(got.bytes().chunks(size));
    let at = pairs.position(|(exact, got)| exact != got).unwrap_or(0);
    let value = |buffer: &Buffer| buffer.to_f32().get(at).copied().unwrap_or(f32::NAN);
    Some(format!(
        "token {}, channel {}: {:?} instead of {:?}",
        at / hidden,
        at % hidden,
        value(got),
        value(exact)
    ))
}
