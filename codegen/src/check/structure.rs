//! Whether a graph holds together: that ids name something, operands come first, no parameter is two values, names
//! are names, and the two halves of an update in place agree.
//!
//! The parser makes no other graphs. But a [`Graph`] can be made by hand, and every rule after this one, and
//! every kernel, indexes by what it says.

use super::{At, Problem, ProblemKind as Kind};
use crate::op::OperandKind;
use crate::{Call, Graph, Op, Operand, OutputId, ParamId, ValueId};

/// Checks what all other checks rely on.
pub(super) fn structure(graph: &Graph, problems: &mut Vec<Problem>) {
    let mut report = |at, what: String| problems.push(Problem { at, kind: Kind::Malformed { what } });
    let (params, outputs) = (graph.params.len(), graph.outputs.len());
    let names = graph.params.iter().map(|p| &p.name).chain(graph.outputs.iter().map(|o| &o.name));
    for name in names.chain(graph.nodes.iter().filter_map(|n| n.name.as_ref())).chain([&graph.name]) {
        if name.is_empty() || name.contains(unprintable) {
            report(At::Pattern, format!("{name:?} is not a name"));
        }
    }
    if outputs == 0 {
        report(At::Pattern, "it returns nothing".into());
    }
    for (id, node) in graph.values() {
        for operand in node.op.operands().filter(|x| x.0 >= id.0) {
            report(
                At::Value(id),
                format!("value {} reads value {}, which does not come before it", id.0, operand.0),
            );
        }
        for param in node.op.params().filter(|p| p.0 as usize >= params) {
            report(At::Value(id), format!("value {} reads parameter {} of {params}", id.0, param.0));
        }
        if let Op::Call(call) = node.op
            && !fits(&call)
        {
            report(At::Value(id), format!("value {} is {call:?}, and not {}", id.0, call.operation.usage()));
        }
        // Of a value that does not come before, the loop above has told.
        if let Op::Result(of, i) = node.op
            && let Some(called) = graph.nodes.get(of.0 as usize)
            && called.op.operation().is_none_or(|o| i as usize >= o.spec().results.len())
        {
            report(At::Value(id), format!("value {} is result {i} of {:?}", id.0, called.op));
        }
        let is_tuple = |x: ValueId| {
            let operation = graph.nodes.get(x.0 as usize).and_then(|n| n.op.operation());
            operation.is_some_and(|o| o.spec().results.len() > 1)
        };
        if !matches!(node.op, Op::Result(..)) {
            for operand in node.op.operands().filter(|x| is_tuple(*x)) {
                report(At::Value(id), format!("value {} reads value {}, which is several", id.0, operand.0));
            }
        }
        // A kernel has one place for what it loads of a parameter.
        if let Op::Param(param) = node.op
            && graph.nodes[..id.0 as usize].iter().any(|earlier| earlier.op == node.op)
        {
            report(At::Value(id), format!("value {} is parameter {} again", id.0, param.0));
        }
    }
    for (i, param) in graph.params.iter().enumerate() {
        let back = |o: OutputId| graph.outputs.get(o.0 as usize).and_then(|o| o.in_place);
        if param.in_place.is_some_and(|o| back(o) != Some(ParamId(i as u32))) {
            let what = format!("`{}` names an output that is not written in its place", param.name);
            report(At::Param(ParamId(i as u32)), what);
        }
    }
    for (i, output) in graph.outputs.iter().enumerate() {
        let at = At::Output(OutputId(i as u32));
        if output.value.0 as usize >= graph.nodes.len() {
            report(at, format!("`{}` is value {} of {}", output.name, output.value.0, graph.nodes.len()));
        }
        let returned = graph.nodes.get(output.value.0 as usize).and_then(|n| n.op.operation());
        if returned.is_some_and(|o| o.spec().results.len() > 1) {
            report(at, format!("`{}` is value {}, which is several", output.name, output.value.0));
        }
        let back = |p: ParamId| graph.params.get(p.0 as usize).and_then(|p| p.in_place);
        if output.in_place.is_some_and(|p| back(p) != Some(OutputId(i as u32))) {
            report(at, format!("`{}` is written in place of a parameter that does not name it", output.name));
        }
        if graph.outputs[..i].iter().any(|o| o.name == output.name) {
            report(at, format!("two outputs are named `{}`", output.name));
        }
    }
}

/// Whether a call has the operands of its operation: a parameter or a value where there is to be one.
fn fits(call: &Call) -> bool {
    let expected = call.operation.spec().operands;
    expected.len() == call.operands().count()
        && expected.iter().zip(call.operands()).all(|(spec, operand)| {
            matches!(operand, Operand::Param(_)) == matches!(spec.kind, OperandKind::Param(_))
        })
}

/// What no identifier has, and what would not stay in the comment or string of generated code that shows a name.
fn unprintable(c: char) -> bool {
    c.is_control() || c.is_whitespace() || matches!(c, '"' | '\\' | '/' | '*')
}
