//! Values, and what is returned of them.

use super::{At, Fact, MAX_COLLECTIVES, Problem, ProblemKind as Kind};
use crate::op::{OperandKind, Operation, ResultSpec};
use crate::program::Space;
use crate::{Call, Elem, Graph, Op, Operand, OutputId, ParamId, Role, ValueId};

/// Checks every operation by itself and in what it depends on. A wrong operand is reported where it is
/// used, and the value is taken for what it was meant to be, so that one mistake gives one message.
pub(crate) fn values(graph: &Graph, problems: &mut Vec<Problem>) -> Vec<Fact> {
    let mut facts = Vec::<Fact>::with_capacity(graph.nodes.len());
    let mut collectives = 0;
    for (id, node) in graph.values() {
        let mut pass = Pass { graph, id, facts: &facts, problems };
        let mut fact =
            Fact { space: pass.space(node.op), optional: false, after: None, tuple: None, quantized: None };
        match node.op {
            Op::Call(call) => match call.operation.spec().results {
                [one] => fact.quantized = one.quantized,
                several => fact.tuple = Some(several.len()),
            },
            Op::Result(of, i) => fact.quantized = pass.result(of, i).and_then(|r| r.quantized),
            _ => {}
        }
        if let Op::Param(p) = node.op {
            fact.optional = graph.param(p).optional;
        }
        fact.after = node.op.operands().find_map(|x| facts[x.0 as usize].after);
        if let Some(name) = collective(node.op) {
            collectives += 1;
            let kind = match fact.after {
                Some(first) => Some(Kind::DependentCollectives {
                    first: collective(graph.op(first)).unwrap_or(name),
                    second: name,
                }),
                None if collectives > MAX_COLLECTIVES => {
                    Some(Kind::TooManyCollectives { got: collectives, max: MAX_COLLECTIVES })
                }
                None => None,
            };
            problems.extend(kind.map(|kind| Problem { at: At::Value(id), kind }));
            fact.after = Some(id);
        }
        facts.push(fact);
    }
    facts
}

/// Checks what is returned, and that everything else is for something.
pub(crate) fn results(graph: &Graph, facts: &[Fact], problems: &mut Vec<Problem>) {
    for (i, output) in graph.outputs.iter().enumerate() {
        let fact = facts[output.value.0 as usize];
        let name = output.name.to_string();
        let first = graph.outputs[..i].iter().find(|o| o.value == output.value);
        let in_place = output.in_place.and_then(|p| in_place(graph, p, OutputId(i as u32)));
        let kind = if let Some(first) = first {
            Some(Kind::ReturnedTwice { name, first: first.name.to_string() })
        } else if in_place.is_some() {
            in_place
        } else if fact.optional {
            Some(Kind::OptionalOutput { name })
        } else {
            shape_of_output(name, fact, output.role)
        };
        problems.extend(kind.map(|kind| Problem { at: At::Output(OutputId(i as u32)), kind }));
    }
    unused(graph, problems);
    let fixed = &graph.fixed;
    let collectives = || Operation::usages(|spec| spec.collective);
    for (dim, is_fixed, is_used, needs) in [
        ("top_k", fixed.top_k.is_some(), graph.has_top_k(), "`RowMap`".to_owned()),
        ("ranks", fixed.ranks.is_some(), graph.has_collective(), collectives()),
        ("wire", fixed.wire.is_some(), graph.has_collective(), collectives()),
    ] {
        if is_fixed && !is_used {
            problems.push(Problem { at: At::Dim(dim), kind: Kind::DimWithoutUse { dim, needs } });
        }
    }
}

/// Whether a value is what its type in the return type says.
fn shape_of_output(name: String, fact: Fact, role: Role) -> Option<Kind> {
    let expected = match role {
        Role::Quantized(elem) => (Some(Space::TokenChannel), Some(elem)),
        role => (role.tensor().space(), None),
    };
    if expected == (Some(fact.space), fact.quantized.map(Elem::Fixed)) {
        return None;
    }
    let text = |space: Option<Space>, quantized: Option<Elem>| match (space, quantized) {
        (space, None) => space.map_or("no value", shape).to_owned(),
        (_, Some(Elem::Fixed(dtype))) => format!("quantised to {dtype}"),
        (_, Some(Elem::Pattern)) => "quantised".to_owned(),
    };
    let instead = match (fact.quantized, fact.space) {
        (Some(dtype), _) => format!("write `{}`", Role::Quantized(Elem::Fixed(dtype)).text()),
        (None, Space::TokenChannel) => "write `Tokens`".to_owned(),
        (None, Space::Token) => "write `PerToken<f32>`".to_owned(),
        (None, Space::Uniform | Space::Channel) => "combine it with a [T, H] value first".to_owned(),
    };
    let got = if fact.quantized.is_some() { "quantised" } else { shape(fact.space) };
    let declared = format!("`{}`, which is {}", role.text(), text(expected.0, expected.1));
    Some(Kind::OutputShape { name, got, declared, instead })
}

/// The name of a collective.
fn collective(op: Op) -> Option<&'static str> {
    op.operation().map(Operation::spec).filter(|spec| spec.collective).map(|spec| spec.name)
}

fn in_place(graph: &Graph, param: ParamId, output: OutputId) -> Option<Kind> {
    let param = graph.param(param);
    let output = &graph.outputs[output.0 as usize];
    let name = param.name.to_string();
    match (param.role, output.role) {
        (Role::Tokens(_), _) if param.optional => Some(Kind::InPlaceType { name, ty: "Option<Tokens>" }),
        (Role::Tokens(_), written) if param.role != written => {
            Some(Kind::InPlaceDType { name, read: param.role.text(), written: written.text() })
        }
        (Role::Tokens(_), _) => None,
        (role, _) => Some(Kind::InPlaceType { name, ty: role.type_name() }),
    }
}

/// Reports only what nothing at all reads: what feeds an unused value is not a mistake of its own.
fn unused(graph: &Graph, problems: &mut Vec<Problem>) {
    let mut read = vec![false; graph.nodes.len()];
    let operands = graph.nodes.iter().flat_map(|n| n.op.operands());
    for id in operands.chain(graph.outputs.iter().map(|o| o.value)) {
        read[id.0 as usize] = true;
    }
    let mut params = vec![false; graph.params.len()];
    for (id, node) in graph.values() {
        let read = read[id.0 as usize];
        match node.op {
            Op::Param(p) => params[p.0 as usize] |= read,
            op => op.params().for_each(|p| params[p.0 as usize] = true),
        }
        if !read && !matches!(node.op, Op::Param(_)) {
            let value = node.name.as_ref().map_or("this value".to_owned(), |name| format!("`{name}`"));
            problems.push(Problem { at: At::Value(id), kind: Kind::UnusedValue { value } });
        }
    }
    for (i, param) in graph.params.iter().enumerate().filter(|(i, _)| !params[*i]) {
        // Shadowed by another parameter, which is reported.
        if graph.params[i + 1..].iter().any(|p| p.name == param.name) {
            continue;
        }
        let name = param.name.to_string();
        let kind = match param.in_place {
            Some(_) => Kind::InPlaceNeverRead { name },
            None => Kind::UnusedParameter { name },
        };
        problems.push(Problem { at: At::Param(ParamId(i as u32)), kind });
    }
}

/// The shape of a value, in the words of the documentation.
pub(super) fn shape(space: Space) -> &'static str {
    match space {
        Space::Uniform => "one value",
        Space::Token => "[T]",
        Space::Channel => "[H]",
        Space::TokenChannel => "[T, H]",
    }
}

/// The check of one node.
struct Pass<'a> {
    graph: &'a Graph,
    id: ValueId,
    facts: &'a [Fact],
    problems: &'a mut Vec<Problem>,
}

impl Pass<'_> {
    fn fact(&self, id: ValueId) -> Fact {
        self.facts[id.0 as usize]
    }

    fn report(&mut self, at: At, kind: Kind) {
        self.problems.push(Problem { at, kind });
    }

    /// What the value varies over. Reports operands that do not fit.
    fn space(&mut self, op: Op) -> Space {
        match op {
            Op::Param(p) => self.param(p),
            Op::Literal(_) => Space::Uniform,
            Op::Neg(x) => {
                self.present(x, 0, "`-`");
                self.fact(x).space
            }
            Op::Mul(a, b) => {
                self.present(a, 0, "`*`");
                self.present(b, 1, "`*`");
                self.fact(a).space.join(self.fact(b).space)
            }
            Op::Add(a, b) | Op::Sub(a, b) => self.sum(a, b),
            Op::Call(call) => {
                self.operands(&call);
                call.operation.spec().results[0].space
            }
            Op::Result(of, i) => self.result(of, i).map_or(Space::TokenChannel, |r| r.space),
        }
    }

    /// Result `i` of the call that `of` is.
    fn result(&self, of: ValueId, i: u32) -> Option<&'static ResultSpec> {
        self.graph.op(of).operation().and_then(|o| o.spec().results.get(i as usize))
    }

    fn param(&mut self, id: ParamId) -> Space {
        let param = self.graph.param(id);
        param.role.tensor().space().unwrap_or_else(|| {
            let ty = param.role.type_name();
            let takes = |o: &&Operation| o.spec().operands.iter().any(|x| x.kind == OperandKind::Param(ty));
            let operation = Operation::ALL.iter().find(takes).map_or(String::new(), |o| o.usage());
            let kind = Kind::NotAValue { name: param.name.to_string(), ty, operation };
            self.report(At::Value(self.id), kind);
            Space::TokenChannel
        })
    }

    fn operands(&mut self, call: &Call) {
        let operation = call.operation;
        for (i, (spec, operand)) in operation.spec().operands.iter().zip(call.operands()).enumerate() {
            match (spec.kind, operand) {
                (OperandKind::Param(expected), Operand::Param(p)) => {
                    let param = self.graph.param(p);
                    if param.role.type_name() != expected {
                        let kind = Kind::OperandType {
                            usage: operation.usage(),
                            operand: spec.name,
                            expected,
                            name: param.name.to_string(),
                            got: param.role.type_name(),
                        };
                        self.report(At::Operand(self.id, i), kind);
                    }
                }
                (OperandKind::Value(allowed), Operand::Value(x)) => {
                    let got = self.fact(x).space;
                    if !self.present(x, i, &format!("`{}`", operation.name())) || allowed.contains(&got) {
                        continue;
                    }
                    let expected = allowed.iter().map(|s| shape(*s)).collect::<Vec<_>>().join(" or ");
                    let usage = operation.usage();
                    let kind = Kind::OperandShape { usage, operand: spec.name, expected, got: shape(got) };
                    self.report(At::Operand(self.id, i), kind);
                }
                // The structure was checked.
                _ => {}
            }
        }
    }

    /// Whether operand `i` is always there, as a value; reports it if not.
    fn present(&mut self, x: ValueId, i: usize, user: &str) -> bool {
        let Fact { optional, quantized, .. } = self.fact(x);
        let user = user.to_owned();
        if optional {
            let kind = Kind::OptionalOperand { name: self.name(x), user };
            self.report(At::Operand(self.id, i), kind);
        } else if quantized.is_some() {
            let kind = Kind::QuantizedOperand { name: self.name(x), user };
            self.report(At::Operand(self.id, i), kind);
        }
        !optional && quantized.is_none()
    }

    /// An absent operand adds nothing, and must not decide the shape either.
    fn sum(&mut self, a: ValueId, b: ValueId) -> Space {
        let (left, right) = (self.fact(a), self.fact(b));
        for (x, fact, i) in [(a, left, 0), (b, right, 1)] {
            if fact.quantized.is_some() {
                self.present(x, i, "a sum");
            }
        }
        let space = left.space.join(right.space);
        let widens = match (left.optional, right.optional) {
            (true, true) => {
                let kind = Kind::BothOptional { left: self.name(a), right: self.name(b) };
                self.report(At::Value(self.id), kind);
                None
            }
            (true, false) => (space != right.space).then_some((a, 0)),
            (false, true) => (space != left.space).then_some((b, 1)),
            (false, false) => None,
        };
        if let Some((x, i)) = widens {
            let kind = Kind::OptionalWidens { name: self.name(x), got: shape(self.fact(x).space) };
            self.report(At::Operand(self.id, i), kind);
        }
        space
    }

    /// The name of a value, if it has one.
    fn name(&self, id: ValueId) -> String {
        match (self.graph.op(id), &self.graph.nodes[id.0 as usize].name) {
            (Op::Param(p), _) => self.graph.param(p).name.to_string(),
            (_, Some(name)) => name.to_string(),
            _ => "this value".to_owned(),
        }
    }
}
