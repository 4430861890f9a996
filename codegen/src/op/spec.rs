//! What is known of an operation.

use crate::graph::Call;
use crate::program::{Lowering, Reg, Space};
use crate::{BindError, DType};

/// What an operand must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandKind {
    /// A parameter of this type, which is not a value by itself.
    Param(&'static str),
    /// A value that varies over one of these.
    Value(&'static [Space]),
}

impl OperandKind {
    /// A value per token and channel.
    pub(super) const ROWS: OperandKind = OperandKind::Value(&[Space::TokenChannel]);
    /// A value per channel, or one for all.
    pub(super) const WEIGHT: OperandKind = OperandKind::Value(&[Space::Channel, Space::Uniform]);
    /// One value for the launch.
    pub(super) const UNIFORM: OperandKind = OperandKind::Value(&[Space::Uniform]);
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandSpec {
    /// Its name, as in the operation's documentation.
    pub name: &'static str,
    /// What it must be.
    pub kind: OperandKind,
}

impl OperandSpec {
    pub(super) const fn new(name: &'static str, kind: OperandKind) -> OperandSpec {
        OperandSpec { name, kind }
    }
}

/// A result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultSpec {
    /// What it varies over.
    pub space: Space,
    /// The dtype that it is made for: it can be returned as that, and nothing else. `None` for what arithmetic reads.
    pub quantized: Option<DType>,
}

impl ResultSpec {
    /// A value per token and channel.
    pub(super) const ROWS: ResultSpec = ResultSpec { space: Space::TokenChannel, quantized: None };
}

/// An operation.
#[derive(Debug)]
pub struct Spec {
    /// The function's name.
    pub name: &'static str,
    /// What it takes.
    pub operands: &'static [OperandSpec],
    /// What it gives: one value, or a tuple of as many.
    pub results: &'static [ResultSpec],
    /// Whether ranks meet in it.
    pub collective: bool,
    /// Its instructions; answers what computes each result.
    pub(crate) lower: fn(&mut Lowering<'_>, &Call) -> Result<Vec<Reg>, BindError>,
}
