//! `seamline check`: patterns of a source file on every executor, held against the reference.

use crate::named::Named;
use crate::target::{HINT, MOST_TOKENS, RANKS, Source, schedule_names};
use crate::{Usage, Verdict, output};
use anyhow::Result;
use clap::{Args, ValueEnum};
use seamline::sim::Simulated;
use seamline::testing::{self, Case, Outcome};
use seamline::{ErrorKind, Graph, Group, Prepare, Schedule, cuda};
use seamline_codegen::{Dims, Presence, Request};
use serde::Serialize;

/// Arguments of `seamline check`.
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    source: Source,
    /// Numbers of ranks; a pattern without a collective runs on one
    #[arg(long, short = 'n', value_delimiter = ',', default_values_t = [1, 2, 8])]
    #[arg(value_parser = clap::value_parser!(u32).range(RANKS))]
    ranks: Vec<u32>,
    /// Numbers of tokens
    #[arg(long, short, value_delimiter = ',', default_values_t = [1, 17])]
    #[arg(value_parser = clap::value_parser!(u64).range(..=MOST_TOKENS))]
    tokens: Vec<u64>,
    /// The schedule, for all numbers of ranks that it can run; without it, the one that is taken
    #[arg(long, value_parser = schedule_names())]
    schedule: Option<Schedule>,
    /// What runs them, and must be there; without it, whatever is
    #[arg(long, value_delimiter = ',')]
    executor: Vec<Executor>,
    /// JSON
    #[arg(long)]
    json: bool,
}

/// `--executor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Executor {
    /// The generated CUDA on the CPU
    Sim,
    /// The first GPU, with loopback ranks
    Cuda,
}

/// What `--json` prints.
#[derive(Default, Serialize)]
struct Report {
    cases: Vec<Row>,
    /// Executors that were not asked for, and are not there.
    missing: Vec<Missing>,
}

#[derive(Serialize)]
struct Row {
    pattern: String,
    variant: String,
    ranks: u32,
    tokens: usize,
    inputs: &'static str,
    executor: String,
    equal: bool,
    difference: Option<Difference>,
    /// Why it could not be run.
    reason: Option<String>,
    errors: Vec<OutputError>,
}

#[derive(Serialize)]
struct Difference {
    rank: usize,
    output: String,
    token: usize,
    channel: usize,
    /// Bits and value.
    expected: String,
    got: String,
}

/// Relative L2 error against f64; null where results are not finite.
#[derive(Serialize)]
struct OutputError {
    output: String,
    error: Option<f64>,
}

#[derive(Serialize, PartialEq, Eq)]
struct Missing {
    executor: &'static str,
    reason: String,
}

impl Check {
    /// Checks all patterns; the verdict is good only if there was something to check and all bits are equal.
    pub fn run(&self) -> Result<Verdict> {
        // All that is wrong with the command line shows before anything slow.
        let mut checks = Vec::new();
        let mut total = 0;
        // They live as long as kernels of them may, which is as long as the command runs.
        let patterns: &'static [Named] = self.source.patterns()?.leak();
        let graphs = patterns.iter().map(|pattern| &pattern.graph).collect::<Vec<_>>();
        for pattern in patterns {
            let Some(check) = self.check(&pattern.graph, &graphs)? else { continue };
            total += check.cases().map_err(usage)? * self.executor.len().max(1);
            checks.push((pattern, check));
        }
        if let (Some(schedule), true) = (self.schedule, checks.is_empty()) {
            let why =
                format!("`{}` can run none of these patterns on these numbers of ranks", schedule.name());
            return Err(Usage(why).into());
        }
        output::progress(&format!("preparing; 0 of {total}"));
        let mut report = Report::default();
        for (pattern, check) in &checks {
            let mut written = Ok(());
            let checked = check.run(|case| {
                output::progress("");
                if !self.json && written.is_ok() {
                    written = output::print(&line(pattern, case));
                }
                report.cases.push(row(pattern, case));
                output::progress(&format!("{} of {}", report.cases.len(), total.max(report.cases.len())));
            });
            output::progress("");
            written?;
            for missing in checked?.missing {
                let missing = Missing { executor: missing.executor, reason: missing.reason };
                if !report.missing.contains(&missing) {
                    report.missing.push(missing);
                }
            }
        }
        self.print(&report)?;
        let good = !report.cases.is_empty() && report.cases.iter().all(|row| row.equal);
        Ok(if good { Verdict::Good } else { Verdict::Bad })
    }

    /// Nothing, if the schedule can run it on none of the numbers of ranks.
    fn check(&self, graph: &'static Graph, all: &[&Graph]) -> Result<Option<testing::Check>, Usage> {
        let request = self.source.request(graph, all, 1)?;
        let tokens: Vec<usize> = self.tokens.iter().map(|tokens| *tokens as usize).collect();
        let most = tokens.iter().copied().max().unwrap_or(1).max(1);
        let mut options = Prepare::new(most);
        if let Some(hidden) = request.hidden {
            options = options.hidden(hidden);
        }
        if let Some(top_k) = request.top_k {
            options = options.top_k(top_k);
        }
        if let Some(dtype) = request.dtype {
            options = options.dtype(dtype);
        }
        let mut ranks = self.ranks.clone();
        if let Some(schedule) = self.schedule {
            options = options.schedule(schedule);
            // What does not bind says so later.
            ranks.retain(|ranks| {
                let request = Request { ranks: *ranks, ..request };
                let dims = Dims::bind(graph, &request, Presence::ALL);
                let program = dims.and_then(|dims| graph.bind(&dims));
                program.is_err() || program.is_ok_and(|program| schedule.refusal(&program).is_none())
            });
            if ranks.is_empty() {
                return Ok(None);
            }
        }
        let check = testing::Check::new(graph, &options).ranks(&ranks).tokens(&tokens).all_kinds();
        Ok(Some(self.executor.iter().fold(check, |check, executor| match executor {
            Executor::Sim => check.executor("sim", Group::simulated),
            Executor::Cuda => check.executor("cuda", |ranks| Group::loopback(&cuda::context(0)?, ranks)),
        })))
    }

    fn print(&self, report: &Report) -> Result<()> {
        if self.json {
            return output::json(report);
        }
        let count = |are: fn(&Row) -> bool| report.cases.iter().filter(|row| are(row)).count();
        let (equal, not_run) = (count(|row| row.equal), count(|row| row.reason.is_some()));
        let mut text = match report.cases.len() {
            0 => "NOT RUN: nothing here runs kernels\n".to_owned(),
            cases => {
                format!("\n{equal} of {cases} cases equal to the reference, bit for bit, on every rank\n")
            }
        };
        if not_run > 0 {
            text += &format!("{not_run} not run\n");
        }
        for Missing { executor, reason } in &report.missing {
            text += &format!("not on {executor}: {reason}\n");
        }
        output::print(&text)
    }
}

/// Options that fit no pattern are the command line's fault; a reference that fails is not.
fn usage(error: seamline::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::Executor { .. } => error.into(),
        _ => Usage(format!("{error}\n{HINT}")).into(),
    }
}

fn line(pattern: &Named, case: &Case) -> String {
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
    let errors = errors(&pattern.graph, case).into_iter().map(|OutputError { output, error }| {
        let error = error.map_or_else(|| "not finite".to_owned(), |error| format!("{error:.1e}"));
        format!("{output} {error}")
    });
    let errors: Vec<_> = errors.collect();
    if !errors.is_empty() {
        line += &format!("  (error: {})", errors.join(", "));
    }
    line + "\n"
}

fn row(pattern: &Named, case: &Case) -> Row {
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

fn errors(graph: &Graph, case: &Case) -> Vec<OutputError> {
    let named = graph.outputs.iter().zip(&case.errors);
    let named = named.map(|(output, error)| OutputError {
        output: output.name.to_string(),
        error: error.is_finite().then_some(*error),
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
