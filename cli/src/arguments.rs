//! The arguments of a pattern, as types and shapes.

use crate::table::Table;
use seamline::{DType, Graph};
use seamline_codegen::program::Program;
use seamline_codegen::{Elem, Fixed, Param, ParamId, Role};
use serde::Serialize;

/// What one argument is. T, H, K and P are tokens, hidden, top_k and permuted rows.
#[derive(Serialize)]
pub struct Argument {
    name: String,
    #[serde(rename = "type")]
    ty: &'static str,
    shape: String,
    /// Absent where it is the pattern's, and that is not known.
    dtype: Option<&'static str>,
    /// It may be absent.
    optional: bool,
    /// It is here; of a pattern without dims, it may be.
    present: bool,
    /// The parameter in whose place it is written.
    in_place_of: Option<String>,
}

/// What goes in, and what comes out.
#[derive(Serialize)]
pub struct Arguments {
    parameters: Vec<Argument>,
    outputs: Vec<Argument>,
}

/// Dims that the attribute fixes.
#[derive(Serialize)]
pub struct FixedDims {
    hidden: Option<u32>,
    top_k: Option<u32>,
    ranks: Option<u32>,
    dtype: Option<&'static str>,
    wire: Option<&'static str>,
}

impl Arguments {
    /// Those of a pattern that is not bound to dims.
    pub fn of_graph(graph: &Graph) -> Arguments {
        let pattern = graph.fixed.dtype;
        let parameters = graph.params.iter().map(|p| parameter(p, pattern, true));
        let outputs = graph.outputs.iter().map(|o| {
            let place = o.in_place.map(|id| graph.param(id));
            output(&o.name, o.role, pattern, place)
        });
        Arguments { parameters: parameters.collect(), outputs: outputs.collect() }
    }

    /// Those of a pattern with all its dims.
    pub fn of_program(program: &Program) -> Arguments {
        let pattern = Some(program.dims.dtype);
        let parameters = program.params.iter().enumerate().map(|(i, p)| {
            let present = !p.optional || program.dims.present.has(ParamId(i as u32));
            parameter(p, pattern, present)
        });
        let outputs = program.outputs.iter().map(|o| {
            let place = o.in_place.map(|id| program.param(id));
            output(&o.name, o.role, pattern, place)
        });
        Arguments { parameters: parameters.collect(), outputs: outputs.collect() }
    }

    /// One row each.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&["", "", "type", "shape", "dtype"]);
        for argument in &self.parameters {
            let ty = match argument.optional {
                true => format!("Option<{}>", argument.ty),
                false => argument.ty.to_owned(),
            };
            table.row(["in", &argument.name, &ty, &argument.shape, argument.dtype()]);
        }
        for argument in &self.outputs {
            let place = argument.in_place_of.as_ref().map(|name| format!("in place of {name}"));
            let place = place.unwrap_or_default();
            table.row(["out", &argument.name, argument.ty, &argument.shape, argument.dtype(), &place]);
        }
        table
    }
}

impl Argument {
    fn dtype(&self) -> &'static str {
        self.dtype.unwrap_or("the pattern's")
    }
}

fn parameter(param: &Param, pattern: Option<DType>, present: bool) -> Argument {
    Argument {
        name: param.name.to_string(),
        ty: param.role.type_name(),
        shape: param.role.tensor().shape(),
        dtype: name(param.role, pattern),
        optional: param.optional,
        present,
        in_place_of: None,
    }
}

fn output(called: &str, role: Role, pattern: Option<DType>, place: Option<&Param>) -> Argument {
    Argument {
        name: called.to_owned(),
        ty: role.type_name(),
        shape: role.tensor().shape(),
        dtype: name(role, pattern),
        optional: false,
        present: true,
        in_place_of: place.map(|param| param.name.to_string()),
    }
}

/// The name of a dtype that may depend on the pattern's.
fn name(role: Role, pattern: Option<DType>) -> Option<&'static str> {
    match role.tensor().elem {
        Elem::Pattern => pattern.map(DType::name),
        Elem::Fixed(dtype) => Some(dtype.name()),
    }
}

impl FixedDims {
    pub fn of(Fixed { hidden, top_k, ranks, dtype, wire }: &Fixed) -> FixedDims {
        let [dtype, wire] = [dtype, wire].map(|dtype| dtype.map(DType::name));
        FixedDims { hidden: *hidden, top_k: *top_k, ranks: *ranks, dtype, wire }
    }

    /// As the attribute says them.
    pub fn text(&self) -> String {
        let number = |n: Option<u32>| n.map(|n| n.to_string());
        let dtype = |dtype: Option<&str>| dtype.map(str::to_owned);
        let all = [
            ("hidden", number(self.hidden)),
            ("top_k", number(self.top_k)),
            ("ranks", number(self.ranks)),
            ("dtype", dtype(self.dtype)),
            ("wire", dtype(self.wire)),
        ];
        let given = all.into_iter().filter_map(|(name, value)| Some(format!("{name} = {}", value?)));
        given.collect::<Vec<_>>().join(", ")
    }
}
