//! Whether a graph means something: types, liveness, limits.
//!
//! Nothing here knows source text: a [`Problem`] says at which node, parameter or output it is, and whoever
//! parsed the graph knows where that was written. So the macro and the command share every rule.

mod body;
mod catalog;
mod problem;
mod signature;
mod structure;

pub use problem::ProblemKind;

use crate::program::Space;
use crate::{DType, Graph, OutputId, ParamId, ValueId};
pub(crate) use catalog::catalog;

/// The most collectives in one pattern. Every schedule of this version exchanges once per launch.
pub const MAX_COLLECTIVES: usize = 1;

/// What a [`Problem`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// The pattern as a whole.
    Pattern,
    /// What the attribute fixes: `hidden`, `top_k`, `ranks`, `dtype` or `wire`.
    Dim(&'static str),
    /// A parameter.
    Param(ParamId),
    /// A value.
    Value(ValueId),
    /// An operand of a value, counted from 0.
    Operand(ValueId, usize),
    /// A returned value.
    Output(OutputId),
}

/// Something wrong with a graph, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What it is about.
    pub at: At,
    /// What is wrong.
    pub kind: ProblemKind,
}

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What it varies over.
    pub space: Space,
    /// It is an `Option` parameter, which may be absent at launch.
    pub optional: bool,
    /// The collective it depends on, itself included.
    pub after: Option<ValueId>,
    /// It is no value, but the results of a call, as many as this.
    pub tuple: Option<usize>,
    /// It is what a quantiser gives: to be returned as this dtype.
    pub quantized: Option<DType>,
}

impl Fact {
    /// What the value is, in words.
    pub fn declared(&self) -> &'static str {
        match (self.optional, self.tuple) {
            (true, _) => "an `Option`",
            (_, Some(_)) => "several results",
            _ => body::shape(self.space),
        }
    }
}

/// Checks `graph`; answers a fact per node, or everything that is wrong with it.
///
/// # Errors
/// All problems, in the order signature, body, results; or those that keep the graph from being read at all.
/// No graph makes it panic.
pub fn check(graph: &Graph) -> Result<Vec<Fact>, Vec<Problem>> {
    let mut problems = Vec::new();
    structure(graph, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    signature(graph, &mut problems);
    let facts = values(graph, &mut problems);
    results(graph, &facts, &mut problems);
    match problems.is_empty() {
        true => Ok(facts),
        false => Err(problems),
    }
}

// The parser checks a body with errors as far as it got: signature and values hold for any prefix of a
// body, results only for a whole one.
pub(crate) use body::{results, values};
pub(crate) use signature::signature;
use structure::structure;

#[cfg(test)]
mod tests;
