//! What was checked, and how it went.

use super::compare::Difference;
use super::error::CheckError;
use crate::Error;
use seamline_codegen::workload::Kind;
use std::fmt;

/// One launch of all ranks, compared with the reference.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Case {
    /// The pattern.
    pub pattern: String,
    /// Which optional inputs it had, in words; empty where the pattern has none.
    pub variant: String,
    /// N.
    pub ranks: u32,
    /// T.
    pub tokens: usize,
    /// What the inputs were like.
    pub kind: Kind,
    /// What ran it: `sim`, `cuda`, or what [`Check::executor`](super::Check::executor) called it.
    pub executor: String,
    /// How it went.
    pub outcome: Outcome,
    /// Per output: relative L2 error against f64, the worst rank's. NaN where results are not finite; empty where
    /// there are none.
    pub errors: Vec<f64>,
}

/// How a case went.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Every rank stored the reference's bits.
    Equal,
    /// One did not; the first element of it.
    Different(Difference),
    /// It could not be run.
    Failed(Error),
}

impl Outcome {
    /// Whether every rank stored the reference's bits.
    pub fn is_equal(&self) -> bool {
        matches!(self, Outcome::Equal)
    }
}

/// An executor that this machine lacks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Missing {
    /// `sim` or `cuda`.
    pub executor: &'static str,
    /// What it needs.
    pub reason: String,
}

/// Everything that was checked. Printed, it is one line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// In the order in which they ran.
    pub cases: Vec<Case>,
    /// Executors that were looked for in vain.
    pub missing: Vec<Missing>,
    pub(super) pattern: String,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { pattern, variant, ranks, tokens, kind, executor, outcome, .. } = self;
        write!(f, "`{pattern}`")?;
        if !variant.is_empty() {
            write!(f, " with {variant}")?;
        }
        write!(f, ", N = {ranks}, T = {tokens}, inputs: {kind}, on {executor}: ")?;
        match outcome {
            Outcome::Equal => f.write_str("bits equal"),
            Outcome::Different(difference) => difference.fmt(f),
            Outcome::Failed(error) => error.fmt(f),
        }
    }
}

impl Report {
    /// How many cases ran with equal bits.
    pub fn equal(&self) -> usize {
        self.cases.iter().filter(|case| case.outcome.is_equal()).count()
    }

    /// Itself if something was checked, and all of it was equal.
    ///
    /// # Errors
    /// The first case that was not, or that there was none.
    pub fn into_result(self) -> Result<Report, CheckError> {
        if self.cases.is_empty() {
            return Err(CheckError::NothingRan { pattern: self.pattern, missing: self.missing });
        }
        let (equal, cases) = (self.equal(), self.cases.len());
        match self.cases.iter().find(|case| !case.outcome.is_equal()) {
            None => Ok(self),
            Some(case) => Err(CheckError::Case { case: Box::new(case.clone()), bad: cases - equal, cases }),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut executors: Vec<&str> = self.cases.iter().map(|case| case.executor.as_str()).collect();
        executors.sort_unstable();
        executors.dedup();
        let (equal, cases) = (self.equal(), self.cases.len());
        write!(f, "`{}`: {equal} of {cases} cases equal", self.pattern)?;
        if !executors.is_empty() {
            write!(f, " on {}", executors.join(" and "))?;
        }
        self.missing.iter().try_for_each(|missing| write!(f, "; {missing}"))
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not on {}: {}", self.executor, self.reason)
    }
}
