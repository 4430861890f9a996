//! Cases, as data and as lines.

use super::inputs::is_inexact;
use crate::named::Named;
use seamline::Graph;
use seamline::testing::{self, Case, Outcome};
use serde::Serialize;

/// What `--json` prints.
#[derive(Default, Serialize)]
pub struct Report {
    pub cases: Vec<Row>,
    /// Executors that were not asked for, and are not there.
    pub missing: Vec<Missing>,
}

#[derive(Serialize)]
pub struct Row {
    pub pattern: String,
    pub variant: String,
    pub ranks: u32,
    pub tokens: usize,
    pub inputs: &'static str,
    pub executor: String,
    pub equal: bool,
    pub difference: Option<Difference>,
    /// Why it could not be run.
    pub reason: Option<String>,
    pub errors: Vec<OutputError>,
}

#[derive(Serialize)]
pub struct Difference {
    pub rank: usize,
    pub output: String,
    pub token: usize,
    pub channel: usize,
    /// Bits and value.
    pub expected: String,
    pub got: String,
}

/// Relative L2 error against f64; null where results are not finite.
#[derive(Serialize)]
pub struct OutputError {
    pub output: String,
    pub error: Option<f64>,
    /// However well it is rounded, such inputs give a large one.
    pub by_design: bool,
}

#[derive(Serialize, PartialEq, Eq)]
pub struct Missing {
    pub executor: &'static str,
    pub reason: String,
}

/// A case as `-v` has it.
pub fn line(pattern: &Named, case: &Case) -> String {
    let verdict = match case.outcome {
        Outcome::Equal => "equal",
        Outcome::Different(_) => "DIFFERENT",
        Outcome::Failed(_) => "NOT RUN",
    };
    let variant = if case.variant.is_empty() { String::new() } else { format!("{}, ", case.variant) };
    let mut line = format!(
        "{verdict:9}  {}: {variant}N={}, T={}, {}, {}",
        pattern.path, case.ranks, case.tokens, case.kind, case.executor
    );
    match &case.outcome {
        Outcome::Equal => {}
        Outcome::Different(difference) => line += &format!(": {difference}"),
        Outcome::Failed(error) => line += &format!(": {error}"),
    }
    let errors = errors(&pattern.graph, case).into_iter().map(|OutputError { output, error, by_design }| {
        let error = error.map_or_else(|| "not finite".to_owned(), |error| format!("{error:.1e}"));
        let note = if by_design { ", as such inputs have it" } else { "" };
        format!("{output} {error}{note}")
    });
    let errors: Vec<_> = errors.collect();
    if !errors.is_empty() {
        line += &format!("  (error: {})", errors.join(", "));
    }
    line + "\n"
}

/// A case as `--json` has it.
pub fn row(pattern: &Named, case: &Case) -> Row {
    let (difference, reason) = match &case.outcome {
        Outcome::Equal => (None, None),
        Outcome::Different(difference) => (Some(difference.into()), None),
        Outcome::Failed(error) => (None, Some(error.to_string())),
    };
    Row {
        pattern: pattern.path.clone(),
        variant: case.variant.clone(),
        ranks: case.ranks,
        tokens: case.tokens,
        inputs: case.kind.name(),
        executor: case.executor.clone(),
        equal: case.outcome.is_equal(),
        difference,
        reason,
        errors: errors(&pattern.graph, case),
    }
}

pub fn errors(graph: &Graph, case: &Case) -> Vec<OutputError> {
    let named = graph.outputs.iter().zip(&case.errors);
    let named = named.map(|(output, error)| OutputError {
        output: output.name.to_string(),
        error: error.is_finite().then_some(*error),
        by_design: is_inexact(case.kind),
    });
    named.collect()
}

impl From<&testing::Difference> for Difference {
    fn from(difference: &testing::Difference) -> Difference {
        Difference {
            rank: difference.rank,
            output: difference.output.clone(),
            token: difference.token,
            channel: difference.channel,
            expected: difference.expected.to_string(),
            got: difference.got.to_string(),
        }
    }
}
