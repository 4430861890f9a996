//! The checks of a graph, with the places of what they find.

use super::body::Body;
use super::{Diagnostic, Options, Place, Reported, Signature};
use crate::check::{self, At, Problem, ProblemKind};
use crate::{Graph, ValueId};

/// What a graph was made of.
pub(super) struct Source<'a> {
    /// The fn's name.
    pub name: Place,
    pub options: &'a Options,
    pub signature: &'a Signature,
    pub body: &'a Body,
}

impl Source<'_> {
    /// Everything that is wrong with `graph`, as far as its source was understood.
    pub fn check(&self, graph: &Graph) -> Vec<Reported> {
        let mut problems = Vec::new();
        check::signature(graph, &mut problems);
        let facts = check::values(graph, &mut problems);
        let declared = |id: ValueId| facts[id.0 as usize].declared();
        let reshaped = self.body.assignments.iter().filter(|a| declared(a.from) != declared(a.to)).map(|a| {
            let (from, to) = (declared(a.from), declared(a.to));
            Diagnostic::AssignShape { name: a.name.clone(), from, to }.at(a.place)
        });
        let mut reported = reshaped.collect::<Vec<_>>();
        if self.body.whole && self.signature.is_known() {
            check::results(graph, &facts, &mut problems);
        }
        reported.extend(problems.into_iter().filter(|p| self.is_understood(p)).map(|p| self.locate(p)));
        reported
    }

    /// A parameter of a type that is not understood stands in the graph as `Tokens`.
    fn is_understood(&self, problem: &Problem) -> bool {
        !matches!(problem.at, At::Param(id) if self.signature.params[id.0 as usize].role.is_none())
    }

    fn locate(&self, Problem { at, kind }: Problem) -> Reported {
        use ProblemKind::{UnsupportedDType, UnsupportedOption};
        let of_the_type = matches!(kind, UnsupportedDType { .. } | UnsupportedOption { .. });
        let place = match at {
            At::Pattern => self.name,
            At::Dim(dim) => self.options.place(dim).unwrap_or(self.name),
            At::Param(id) if of_the_type => self.signature.params[id.0 as usize].ty,
            At::Param(id) => Place::of(&self.signature.params[id.0 as usize].ident),
            At::Value(id) => self.body.nodes[id.0 as usize].place,
            At::Operand(id, i) => self.body.nodes[id.0 as usize].operands[i],
            At::Output(id) if of_the_type => self.body.outputs[id.0 as usize].ty,
            At::Output(id) => Place::of(&self.body.outputs[id.0 as usize].ident),
        };
        Diagnostic::Problem { kind }.at(place)
    }
}
