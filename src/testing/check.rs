//! Every variant, number of ranks, number of tokens and kind of input, on every executor.

use super::compare::{Comparison, Expected};
use super::executors::{self, Executor};
use super::report::{Case, Outcome, Report};
use super::runner::Runner;
use crate::{Error, ErrorKind, Graph, Group, Prepare, Rank, Variant};
use seamline_codegen::Program;
use seamline_codegen::reference::Buffer;
use seamline_codegen::workload::{Kind, Workload};
use std::borrow::Cow;
use std::cell::LazyCell;
use std::ops::ControlFlow;

/// Any seed will do; a fixed one makes every run the same.
const SEED: u64 = 0x5EA3;

/// Inputs that have each broken a kernel of this sort, and an engine's.
const FEW_KINDS: [Kind; 5] =
    [Kind::Ordinary, Kind::KIMI_K2, Kind::InfAndNan, Kind::NegativeZeros, Kind::OutOfRange];

/// What to check: [`check`](super::check) with everything to choose.
///
/// ```
/// use seamline::patterns::ArResidualRmsnorm;
/// use seamline::testing::{Check, Kind};
/// use seamline::{DType, Definition, Group, Prepare};
///
/// let options = Prepare::new(3).hidden(64).dtype(DType::Bf16);
/// let check = Check::new(ArResidualRmsnorm::GRAPH, &options)
///     .ranks(&[1, 4])
///     .tokens(&[1, 3])
///     .kinds(&[Kind::Ordinary, Kind::Cancelling])
///     .executor("reference", Group::reference); // it agrees with itself
/// let report = check.run(|case| println!("{case}"))?.into_result()?;
/// assert_eq!(report.cases.len(), 2 * 2 * 2);
/// # Ok::<(), seamline::testing::CheckError>(())
/// ```
pub struct Check {
    graph: &'static Graph,
    options: Prepare,
    ranks: Cow<'static, [u32]>,
    tokens: Option<Vec<usize>>,
    kinds: Cow<'static, [Kind]>,
    executors: Vec<Executor>,
}

/// A pattern for one number of ranks.
struct Prepared {
    ranks: u32,
    options: Prepare,
    /// The reference's, which has the programs of all variants.
    runner: Runner,
    tokens: Vec<usize>,
    kinds: Vec<Kind>,
}

impl Check {
    /// Checks `graph`, prepared with `options`, as [`check`](super::check) does unless told otherwise.
    pub fn new(graph: &'static Graph, options: &Prepare) -> Check {
        Check {
            graph,
            options: options.clone(),
            ranks: Cow::Borrowed(&[1, 2]),
            tokens: None,
            kinds: Cow::Borrowed(&FEW_KINDS),
            executors: Vec::new(),
        }
    }

    /// Numbers of ranks. A pattern without a collective runs on one all the same, and one whose attribute fixes
    /// `ranks` on those.
    #[must_use]
    pub fn ranks(mut self, ranks: &[u32]) -> Check {
        self.ranks = ranks.to_vec().into();
        self
    }

    /// Numbers of tokens, up to the options' `max_tokens`.
    #[must_use]
    pub fn tokens(mut self, tokens: &[usize]) -> Check {
        self.tokens = Some(tokens.to_vec());
        self
    }

    /// Kinds of inputs. Those that are special in their row map alone are left out for patterns without one.
    #[must_use]
    pub fn kinds(mut self, kinds: &[Kind]) -> Check {
        self.kinds = kinds.to_vec().into();
        self
    }

    /// Every kind of inputs.
    #[must_use]
    pub fn all_kinds(self) -> Check {
        self.kinds(&[&[Kind::Ordinary, Kind::KIMI_K2][..], &Kind::HOSTILE].concat())
    }

    /// Runs on groups that `group` makes for a number of ranks. Called again, on those too; never called, on every
    /// executor that this machine has.
    #[must_use]
    pub fn executor(
        mut self,
        name: impl Into<String>,
        group: impl Fn(u32) -> Result<Vec<Rank>, Error> + Send + Sync + 'static,
    ) -> Check {
        self.executors.push(Executor::new(name, group));
        self
    }

    /// How many cases one executor runs.
    ///
    /// # Errors
    /// Options that do not fit the pattern.
    pub fn cases(&self) -> Result<usize, Error> {
        let prepared = self.prepared()?;
        Ok(prepared.iter().map(|p| p.runner.variants().len() * p.tokens.len() * p.kinds.len()).sum())
    }

    /// Runs all cases, whatever fails, and hands each to `each` as it ends.
    ///
    /// # Errors
    /// Options that do not fit the pattern. What goes wrong with a case is in the report.
    pub fn run(&self, mut each: impl FnMut(&Case)) -> Result<Report, Error> {
        self.run_while(|case| {
            each(case);
            ControlFlow::Continue(())
        })
    }

    /// As [`run`](Check::run), until `each` breaks off: the report has what ran.
    ///
    /// # Errors
    /// As there.
    pub fn run_while(&self, mut each: impl FnMut(&Case) -> ControlFlow<()>) -> Result<Report, Error> {
        let (found, missing);
        let executors = match self.executors.is_empty() {
            true => {
                (found, missing) = executors::here();
                &found
            }
            false => {
                missing = Vec::new();
                &self.executors
            }
        };
        let mut report = Report { cases: Vec::new(), missing, pattern: self.graph.name.to_string() };
        for prepared in self.prepared()? {
            // Once for all cases: compiling is what takes long.
            let runner = |executor: &Executor| {
                Runner::new(self.graph, &(executor.group)(prepared.ranks)?, &prepared.options)
            };
            let runners: Vec<_> = executors.iter().map(|e| (e.name.as_str(), runner(e))).collect();
            for variant in prepared.runner.variants() {
                for (&tokens, &kind) in product(&prepared.tokens, &prepared.kinds) {
                    let mut goes_on = ControlFlow::Continue(());
                    self.run_one(&prepared, variant, (tokens, kind), &runners, |case| {
                        if goes_on.is_continue() {
                            goes_on = each(&case);
                            report.cases.push(case);
                        }
                    });
                    if goes_on.is_break() {
                        return Ok(report);
                    }
                }
            }
        }
        Ok(report)
    }

    /// One workload on all executors.
    fn run_one(
        &self,
        prepared: &Prepared,
        variant: &Variant,
        (tokens, kind): (usize, Kind),
        runners: &[(&str, Result<Runner, Error>)],
        mut ended: impl FnMut(Case),
    ) {
        let program = variant.program();
        // Neither is made if nothing was prepared that could run it.
        let workload = LazyCell::new(|| Workload::new(program, tokens, SEED, kind));
        let expected = LazyCell::new(|| {
            Expected::new(program, &workload).map_err(|error| Error::executor("reference", error))
        });
        for (executor, runner) in runners {
            let compared = runner.as_ref().map_err(Clone::clone).and_then(|runner| {
                let outputs = run(runner, program, &workload)?;
                Ok(expected.as_ref().map_err(Clone::clone)?.compare(program, &outputs))
            });
            let (outcome, errors) = match compared {
                Err(error) => (Outcome::Failed(error), Vec::new()),
                Ok(Comparison { difference, errors, .. }) => {
                    (difference.map_or(Outcome::Equal, Outcome::Different), errors)
                }
            };
            ended(Case {
                pattern: self.graph.name.to_string(),
                variant: self.describe(variant),
                ranks: prepared.ranks,
                tokens,
                kind,
                executor: (*executor).to_owned(),
                outcome,
                errors,
            });
        }
    }

    fn describe(&self, variant: &Variant) -> String {
        match self.graph.params.iter().any(|param| param.optional) {
            true => variant.describe(self.graph),
            false => String::new(),
        }
    }

    /// The pattern on the reference, for each number of ranks.
    fn prepared(&self) -> Result<Vec<Prepared>, Error> {
        let mut ranks = match self.graph.fixed.ranks {
            _ if !self.graph.has_collective() => vec![1],
            Some(ranks) => vec![ranks],
            None => self.ranks.to_vec(),
        };
        ranks.sort_unstable();
        ranks.dedup();
        ranks.into_iter().map(|ranks| self.prepare(ranks)).collect()
    }

    fn prepare(&self, ranks: u32) -> Result<Prepared, Error> {
        let group = Group::reference(ranks)?;
        let (options, runner) = match Runner::new(self.graph, &group, &self.options) {
            Err(error) if matches!(error.kind(), ErrorKind::TooManyVariants { .. }) => {
                let options = self.some_variants();
                let runner = Runner::new(self.graph, &group, &options)?;
                (options, runner)
            }
            runner => (self.options.clone(), runner?),
        };
        let most = runner.max_tokens();
        let mut tokens = self.tokens.clone().unwrap_or_else(|| vec![1, most.min(5)]);
        tokens.dedup();
        let map = self.graph.has_top_k();
        let kinds = self.kinds.iter().copied().filter(|kind| map || !of_the_map(*kind));
        Ok(Prepared { ranks, options, runner, tokens, kinds: kinds.collect() })
    }

    /// Of many optional inputs: all, all but one, and none.
    fn some_variants(&self) -> Prepare {
        let optional = self.graph.params.iter().filter(|param| param.optional);
        let names: Vec<&str> = optional.map(|param| param.name.as_ref()).collect();
        let singly = names.iter().map(std::slice::from_ref);
        let absent: Vec<&[&str]> = [&[][..]].into_iter().chain(singly).chain([&names[..]]).collect();
        self.options.clone().variants(&absent)
    }
}

/// What every rank stored.
fn run(runner: &Runner, program: &Program, workload: &Workload) -> Result<Vec<Vec<Buffer>>, Error> {
    let ran = runner.run(program, workload);
    if ran.is_err() {
        // A run that broke off leaves half an exchange behind, which must not fail the cases after it. Where the
        // reset itself fails, they say so.
        let _ = runner.reset();
    }
    Ok(ran?.outputs)
}

/// Whether only the row map makes it what it is: without one its inputs are ordinary.
fn of_the_map(kind: Kind) -> bool {
    use Kind::{AllDropped, NanBehindDropped, NoRows, OutOfRange};
    matches!(kind, NanBehindDropped | AllDropped | OutOfRange | NoRows)
}

fn product<'a, A, B>(left: &'a [A], right: &'a [B]) -> impl Iterator<Item = (&'a A, &'a B)> {
    left.iter().flat_map(move |a| right.iter().map(move |b| (a, b)))
}
