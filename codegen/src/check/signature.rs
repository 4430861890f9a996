//! Parameters, and what the attribute fixes.

use super::{At, Problem, ProblemKind as Kind};
use crate::{DType, Elem, Graph, MAX_ARGS, MAX_HIDDEN, MAX_RANKS, MAX_TOP_K, ParamId, Role};

/// The bundle's own field.
const TOKENS: &str = "tokens";

/// Checks the signature and the attribute.
pub(crate) fn signature(graph: &Graph, problems: &mut Vec<Problem>) {
    let mut report = |at, kind| problems.push(Problem { at, kind });
    dims(graph, &mut report);
    for (i, param) in graph.params.iter().enumerate() {
        let at = At::Param(ParamId(i as u32));
        if !param.role.is_parameter() {
            report(at, Kind::ResultType { ty: param.role.type_name() });
        } else {
            dtype(at, param.role, &mut report);
        }
        if let (true, Some(instead)) = (param.optional, param.role.never_optional()) {
            report(at, Kind::UnsupportedOption { ty: param.role.type_name(), instead });
        }
        let name = param.name.to_string();
        if graph.params[..i].iter().any(|p| p.name == param.name) {
            report(at, Kind::NameTaken { name, by: "another parameter", hint: "" });
        } else if param.name == TOKENS {
            report(at, Kind::NameTaken { name, by: "the bundle's own field", hint: "" });
        }
    }
    for (i, output) in graph.outputs.iter().enumerate() {
        let at = At::Output(crate::OutputId(i as u32));
        dtype(at, output.role, &mut report);
        let name = output.name.to_string();
        if output.in_place.is_none() && graph.params.iter().any(|p| p.name == output.name) {
            let hint = ", or mark the parameter `mut` and assign to it for an update in place";
            report(at, Kind::NameTaken { name, by: "a parameter", hint });
        } else if output.name == TOKENS {
            report(at, Kind::NameTaken { name, by: "the bundle's own field", hint: "" });
        }
    }
    let got = graph.params.len() + graph.outputs.iter().filter(|o| o.in_place.is_none()).count();
    if got > MAX_ARGS {
        report(At::Pattern, Kind::TooManyArguments { got, max: MAX_ARGS });
    }
}

/// The argument of a type is one that it can have.
fn dtype(at: At, role: Role, report: &mut impl FnMut(At, Kind)) {
    if let Some(Elem::Fixed(got)) = role.argument()
        && !role.dtypes().contains(&got)
    {
        let instead = match role.dtypes() {
            [one] => format!("`{}`", role.with(Elem::Fixed(*one)).text()),
            _ => format!("bf16, f16 or f32, or leave `<{got}>` out for the pattern's dtype"),
        };
        report(at, Kind::UnsupportedDType { ty: role.type_name(), got, instead });
    }
}

fn dims(graph: &Graph, report: &mut impl FnMut(At, Kind)) {
    let fixed = &graph.fixed;
    let sizes = [
        ("hidden", fixed.hidden, MAX_HIDDEN),
        ("top_k", fixed.top_k, MAX_TOP_K),
        ("ranks", fixed.ranks, MAX_RANKS),
    ];
    for (dim, got, max) in sizes {
        if let Some(got) = got.filter(|got| !(1..=max).contains(got)) {
            report(At::Dim(dim), Kind::DimOutOfRange { dim, got, max });
        }
    }
    for (dim, got) in [("dtype", fixed.dtype), ("wire", fixed.wire)] {
        if let Some(got) = got.filter(|got| !DType::FLOATS.contains(got)) {
            report(At::Dim(dim), Kind::DimDType { dim, got });
        }
    }
}
