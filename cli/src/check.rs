//! `seamline check`: patterns of a source file on every executor, held against the reference.

mod inputs;
mod report;
mod summary;

use crate::named::Named;
use crate::target::{HINT, MOST_TOKENS, RANKS, Source, schedule_names};
use crate::{Usage, Verdict, output};
use anyhow::Result;
use clap::{Args, ValueEnum};
use report::{Missing, Report, Row};
use seamline::sim::Simulated;
use seamline::testing::{self, Kind};
use seamline::{ErrorKind, Graph, Group, Prepare, Schedule, cuda};
use seamline_codegen::{Dims, Presence, Request};
use std::io::Write;
use std::ops::ControlFlow;

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
    /// Kinds of inputs; without it, all that are special for the pattern, and fewer where a case is large
    #[arg(long, value_delimiter = ',', value_parser = inputs::parser())]
    inputs: Vec<Kind>,
    /// A line for each case
    #[arg(long, short)]
    verbose: bool,
    /// JSON
    #[arg(long)]
    json: bool,
}

const NOTE: &str = "error: relative L2 against the same sums in f64; large by design for negative zeros, subnormals, cancelling and \
                    overflow, whose roundings are as large as their values";

/// `--executor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Executor {
    /// The generated CUDA on the CPU
    Sim,
    /// The first GPU, with loopback ranks
    Cuda,
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
            let of_pattern = self.checks(&pattern.graph, &graphs)?;
            for check in &of_pattern {
                total += check.cases().map_err(usage)? * self.executor.len().max(1);
            }
            if !of_pattern.is_empty() {
                checks.push((pattern, of_pattern));
            }
        }
        if let (Some(schedule), true) = (self.schedule, checks.is_empty()) {
            let why =
                format!("`{}` can run none of these patterns on these numbers of ranks", schedule.name());
            return Err(Usage(why).into());
        }
        let mut report = Report::default();
        for (pattern, checks) in &checks {
            let first = report.cases.len();
            for check in checks {
                if self.run_one(pattern, check, total, &mut report)?.is_break() {
                    return Ok(Verdict::Bad);
                }
            }
            let summary = summary::text(&report.cases[first..]);
            if !self.json && !self.verbose && output::print_while_read(&summary)?.is_break() {
                return Ok(Verdict::Bad);
            }
        }
        self.print(&report)?;
        let good = !report.cases.is_empty() && report.cases.iter().all(|row| row.equal);
        Ok(if good { Verdict::Good } else { Verdict::Bad })
    }

    /// Breaks where nobody reads any more.
    fn run_one(
        &self,
        pattern: &Named,
        check: &testing::Check,
        total: usize,
        report: &mut Report,
    ) -> Result<ControlFlow<()>> {
        let progress =
            |done: usize| output::progress(&format!("{}: {done} of {}", pattern.path, total.max(done)));
        progress(report.cases.len());
        let mut written = Ok(ControlFlow::Continue(()));
        let checked = check.run_while(|case| {
            output::progress("");
            if self.verbose && !self.json {
                written = output::print_while_read(&report::line(pattern, case));
            }
            report.cases.push(report::row(pattern, case));
            progress(report.cases.len());
            match written {
                Ok(goes_on) => goes_on,
                Err(_) => ControlFlow::Break(()),
            }
        });
        output::progress("");
        let goes_on = written?;
        for missing in checked?.missing {
            let missing = Missing { executor: missing.executor, reason: missing.reason };
            if !report.missing.contains(&missing) {
                report.missing.push(missing);
            }
        }
        Ok(goes_on)
    }

    /// One for the numbers of tokens that are checked on all inputs, one for those that are large; none, if the schedule
    /// can run it on none of the numbers of ranks.
    fn checks(&self, graph: &'static Graph, all: &[&Graph]) -> Result<Vec<testing::Check>, Usage> {
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
                return Ok(Vec::new());
            }
        }
        let check = |tokens: &[usize], kinds: &[Kind]| {
            let check = testing::Check::new(graph, &options).ranks(&ranks).tokens(tokens).kinds(kinds);
            self.executor.iter().fold(check, |check, executor| match executor {
                Executor::Sim => check.executor("sim", Group::simulated),
                Executor::Cuda => check.executor("cuda", |ranks| Group::loopback(&cuda::context(0)?, ranks)),
            })
        };
        if !self.inputs.is_empty() {
            return Ok(vec![check(&tokens, &self.inputs)]);
        }
        let hidden = request.hidden.or(graph.fixed.hidden).unwrap_or(1);
        let top_k = request.top_k.or(graph.fixed.top_k).unwrap_or(0);
        let most_ranks = graph.fixed.ranks.or(ranks.iter().copied().max()).unwrap_or(1);
        let is_large =
            |tokens: &usize| inputs::elements(graph, most_ranks, *tokens, hidden, top_k) > inputs::LARGE;
        let (large, common): (Vec<_>, Vec<_>) = tokens.iter().partition(|tokens| is_large(tokens));
        if !large.is_empty() {
            note(graph, &large);
        }
        let of = [(common, inputs::all()), (large, inputs::OF_LARGE.to_vec())];
        let of = of.into_iter().filter(|(tokens, _)| !tokens.is_empty());
        Ok(of.map(|(tokens, kinds)| check(&tokens, &kinds)).collect())
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
        if self.verbose && report.cases.iter().any(|row| row.errors.iter().any(|error| error.by_design)) {
            text += &format!("{NOTE}\n");
        }
        for Missing { executor, reason } in &report.missing {
            text += &format!("not on {executor}: {reason}\n");
        }
        output::print(&text)
    }
}

/// Says what is left out of a check that would take minutes.
fn note(graph: &Graph, tokens: &[usize]) {
    let tokens: Vec<String> = tokens.iter().map(ToString::to_string).collect();
    // Whoever closes standard error does not want it.
    let _ = writeln!(
        std::io::stderr(),
        "note: `{}` with T={} has {} kinds of inputs, not all: the simulator is for up to {} million elements (N x T x H x (K + 1)); \
         choose others with --inputs",
        graph.name,
        tokens.join(","),
        inputs::OF_LARGE.len(),
        inputs::LARGE >> 20
    );
}

/// Options that fit no pattern are the command line's fault; a reference that fails is not.
fn usage(error: seamline::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::Executor { .. } => error.into(),
        _ => Usage(format!("{error}\n{HINT}")).into(),
    }
}
