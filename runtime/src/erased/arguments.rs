//! What a kernel takes, as data.

use crate::args::signature::{Columns, Kind, Rows};
use crate::plan::Plan;
use seamline_codegen::DType;

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
    let params = plan.graph.params.iter().map(|param| param.role.type_name());
    // Outputs that are not in place follow, and all are rows of tokens.
    let roles = params.chain(std::iter::repeat("Tokens"));
    let arguments = plan.arguments.iter().zip(roles).map(|(argument, role)| Argument {
        name: &argument.name,
        role,
        access: match argument.kind {
            Kind::Input | Kind::Scalar => Access::Read,
            Kind::Output => Access::Write,
            Kind::InPlace => Access::InPlace,
        },
        dtype: argument.dtype,
        dims: [
            match argument.rows {
                Rows::Token => Some(Dim::Tokens),
                Rows::Permuted => Some(Dim::PermutedRows),
                Rows::One => None,
            },
            match argument.columns {
                Columns::One => None,
                Columns::Experts => Some(Dim::TopK(argument.width)),
                Columns::Channels => Some(Dim::Hidden(argument.width)),
            },
        ]
        .into_iter()
        .flatten()
        .collect(),
        optional: argument.optional,
    });
    arguments.collect()
}
