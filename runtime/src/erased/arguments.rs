//! What a kernel takes, as data.

use crate::args::signature::Kind;
use crate::plan::Plan;
use seamline_codegen::{DType, tensor};

/// One argument of a kernel's launches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Argument<'k> {
    /// As the pattern calls it.
    pub name: &'k str,
    /// Its type in the pattern: `Tokens`, `Permuted`, `RowMap`, `Scalar`, …
    pub role: &'static str,
    /// What the kernel does with it.
    pub access: Access,
    /// Of its elements.
    pub dtype: DType,
    /// Its shape, the outermost first; none for a scalar.
    pub dims: Vec<Dim>,
    /// Elements from one row to the next, of what has rows.
    pub row_stride: Option<u64>,
    /// Whether a launch may leave it out.
    pub optional: bool,
}

impl Argument<'_> {
    /// Whether it is read, then overwritten with a result.
    pub fn in_place(&self) -> bool {
        self.access == Access::InPlace
    }
}

/// What a kernel does with an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Reads it, then writes it.
    InPlace,
}

/// What an argument has an element for, or a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dim {
    /// T: every token of a launch, or more.
    Tokens,
    /// P: every permuted row, as many as there are.
    PermutedRows,
    /// K: so many experts per token.
    TopK(u64),
    /// H: so many channels.
    Hidden(u64),
}

/// Those of `plan`'s launches.
pub(super) fn of(plan: &Plan) -> Vec<Argument<'_>> {
    let params = plan.graph.params.iter().map(|param| param.role);
    let outputs = plan.graph.outputs.iter().filter(|output| output.in_place.is_none());
    let roles = params.chain(outputs.map(|output| output.role));
    let arguments = plan.arguments.iter().zip(roles).map(|(argument, role)| {
        let tensor = &argument.tensor;
        let dim = |dim: &tensor::Dim| match dim {
            tensor::Dim::Tokens => Dim::Tokens,
            tensor::Dim::Rows => Dim::PermutedRows,
            tensor::Dim::TopK => Dim::TopK(tensor.width),
            tensor::Dim::Hidden => Dim::Hidden(tensor.width),
        };
        Argument {
            name: &argument.name,
            role: role.type_name(),
            access: match argument.kind {
                Kind::Input | Kind::Scalar => Access::Read,
                Kind::Output => Access::Write,
                Kind::InPlace => Access::InPlace,
            },
            dtype: tensor.dtype,
            dims: tensor.ty.dims.iter().map(dim).collect(),
            row_stride: tensor.ty.has_rows().then_some(tensor.stride),
            optional: argument.optional,
        }
    });
    arguments.collect()
}
