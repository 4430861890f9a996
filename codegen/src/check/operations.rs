//! The operations a body may call: the one table that parsing and checking share.

use crate::program::Space;
use crate::{Op, ParamId, ValueId};

/// What an operand must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandKind {
    /// A parameter of this type, which is not a value by itself.
    Param(&'static str),
    /// A value that varies over one of these.
    Value(&'static [Space]),
}

/// An operand of an [`Operation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its name, as in the operation's documentation.
    pub name: &'static str,
    /// What it must be.
    pub kind: OperandKind,
}

/// An operation that is called by name.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The function's name.
    pub name: &'static str,
    /// What it takes.
    pub operands: &'static [Operand],
    /// The node, from the operands that are parameters and those that are values, each in order.
    pub build: fn(&[ParamId], &[ValueId]) -> Op,
}

impl Operation {
    /// The operation that `name` names.
    pub fn from_name(name: &str) -> Option<&'static Operation> {
        OPERATIONS.iter().copied().find(|o| o.name == name)
    }

    /// The operation of `op`; `None` for parameters, literals and operators.
    pub fn of(op: Op) -> Option<&'static Operation> {
        match op {
            Op::Param(_) | Op::Literal(_) | Op::Neg(_) | Op::Add(..) | Op::Sub(..) | Op::Mul(..) => None,
            Op::Finalize { .. } => Some(&FINALIZE),
            Op::AllReduce(_) => Some(&ALL_REDUCE),
            Op::RmsNorm { .. } => Some(&RMS_NORM),
        }
    }

    /// How it is called: `rms_norm(x, w, eps)`.
    pub fn usage(&self) -> String {
        let names = self.operands.iter().map(|o| o.name).collect::<Vec<_>>();
        format!("{}({})", self.name, names.join(", "))
    }
}

/// Every operation.
pub const OPERATIONS: &[&Operation] = &[&FINALIZE, &ALL_REDUCE, &RMS_NORM];

const ROWS: OperandKind = OperandKind::Value(&[Space::TokenChannel]);

static FINALIZE: Operation = Operation {
    name: "finalize",
    operands: &[
        Operand { name: "rows", kind: OperandKind::Param("Permuted") },
        Operand { name: "map", kind: OperandKind::Param("RowMap") },
        Operand { name: "weights", kind: OperandKind::Param("ExpertWeights") },
    ],
    build: |p, _| Op::Finalize { rows: p[0], map: p[1], weights: p[2] },
};

static ALL_REDUCE: Operation = Operation {
    name: "all_reduce",
    operands: &[Operand { name: "x", kind: ROWS }],
    build: |_, v| Op::AllReduce(v[0]),
};

static RMS_NORM: Operation = Operation {
    name: "rms_norm",
    operands: &[
        Operand { name: "x", kind: ROWS },
        Operand { name: "w", kind: OperandKind::Value(&[Space::Channel, Space::Uniform]) },
        Operand { name: "eps", kind: OperandKind::Value(&[Space::Uniform]) },
    ],
    build: |_, v| Op::RmsNorm { x: v[0], w: v[1], eps: v[2] },
};
