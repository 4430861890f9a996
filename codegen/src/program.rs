//! A graph bound to dims: every rounding, store, reduction and exchange is an instruction of its own.
//!
//! Executors follow the instructions one by one, so none of them invents a rounding:
//! [`crate::reference`] interprets them, [`crate::emit`] prints them as CUDA.

mod lower;
mod presence;

use crate::{DType, Dims, Graph, OutputId, Param, ParamId, Role, Tensor};
pub(crate) use lower::Lowering;
pub use lower::lower;

/// Index of an instruction of a [`Program`]; the value it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

/// What a value varies over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// One value for the launch.
    Uniform,
    /// `[T]`.
    Token,
    /// `[H]`.
    Channel,
    /// `[T, H]`.
    TokenChannel,
}

impl Space {
    /// The space of an elementwise operation on values of `self` and `other`.
    pub const fn join(self, other: Space) -> Space {
        use Space::*;
        match (self, other) {
            (Uniform, s) | (s, Uniform) => s,
            (Token, Token) => Token,
            (Channel, Channel) => Channel,
            _ => TokenChannel,
        }
    }

    /// Whether it has a value per channel.
    pub const fn has_channels(self) -> bool {
        matches!(self, Space::Channel | Space::TokenChannel)
    }
}

/// What a row reduction joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The values, by the fixed tree (contract rule 4).
    Sum,
    /// Their squares, each joined by fma, by the same tree.
    SumOfSquares,
    /// The largest of the magnitudes as bits, so that a NaN wins (contract rule 6).
    MaxMagnitude,
}

impl Reduction {
    /// Whether the partial results are added; else the largest is taken.
    pub const fn adds(self) -> bool {
        matches!(self, Reduction::Sum | Reduction::SumOfSquares)
    }
}

/// What an instruction works on: who cuts a program, prints or interprets it needs no more of most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Reads memory, or is a constant; costs nothing until it is used.
    Source,
    /// One value of each operand, to one value: channel by channel, or once per token or launch.
    Elementwise,
    /// A vector of neighbouring channels at once.
    Vector,
    /// The whole row: it is known when its phase has ended.
    Row,
    /// All ranks: it ends the phase, and with it one side of the program.
    Exchange,
}

/// One instruction. Everything is f32 arithmetic, rounded once, subnormals kept (contract rule 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inst {
    /// The parameter's value, converted to f32. Never a `Permuted`, `RowMap` or `ExpertWeights`.
    Load(ParamId),
    /// An f32, by its bits.
    Const(u32),
    /// From +0.0, for k in order: skip if the row index is not in 0..P, else `acc = fma(row, weight, acc)`.
    /// Without weights the weight is 1.
    Gather {
        /// `[P, H]`.
        rows: ParamId,
        /// `[T, K]`.
        map: ParamId,
        /// `[T, K]`.
        weights: Option<ParamId>,
    },
    /// `-x`: the sign bit flipped.
    Neg(Reg),
    /// `a + b`.
    Add(Reg, Reg),
    /// `a - b`.
    Sub(Reg, Reg),
    /// `a * b`.
    Mul(Reg, Reg),
    /// `x / n` for a whole `n` up to 65536, IEEE. `x` is never -0.0.
    DivideBy(Reg, u32),
    /// `1 / sqrt(x)`: an IEEE square root, then an IEEE division.
    InverseSqrt(Reg),
    /// `1 / x`, IEEE.
    Reciprocal(Reg),
    /// The larger of the magnitudes as bits, so that a NaN wins.
    MaxMagnitude(Reg, Reg),
    /// To `dtype`, to nearest even, NaN canonical, and back to f32 (contract rules 2, 6, 7).
    Round(Reg, DType),
    /// Rank 0's value plus the others' in rank order. The operand is already rounded to the wire.
    Exchange(Reg),
    /// One value of all channels of a token.
    Reduce(Reg, Reduction),
    /// Writes a rounded value to an output. Computes nothing.
    Store(Reg, OutputId),
}

impl Inst {
    /// What it works on.
    pub const fn class(self) -> Class {
        match self {
            Inst::Load(_) | Inst::Const(_) => Class::Source,
            Inst::Neg(_)
            | Inst::Add(..)
            | Inst::Sub(..)
            | Inst::Mul(..)
            | Inst::DivideBy(..)
            | Inst::InverseSqrt(_)
            | Inst::Reciprocal(_)
            | Inst::MaxMagnitude(..) => Class::Elementwise,
            Inst::Gather { .. } | Inst::Round(..) | Inst::Store(..) => Class::Vector,
            Inst::Reduce(..) => Class::Row,
            Inst::Exchange(_) => Class::Exchange,
        }
    }

    /// Whether its value is only known once its phase has ended.
    pub const fn ends_phase(self) -> bool {
        matches!(self.class(), Class::Row | Class::Exchange)
    }

    /// The values it reads, in order.
    pub fn operands(self) -> impl Iterator<Item = Reg> {
        let pair = match self {
            Inst::Load(_) | Inst::Const(_) | Inst::Gather { .. } => [None, None],
            Inst::Neg(x)
            | Inst::DivideBy(x, _)
            | Inst::InverseSqrt(x)
            | Inst::Reciprocal(x)
            | Inst::Round(x, _)
            | Inst::Exchange(x)
            | Inst::Reduce(x, _)
            | Inst::Store(x, _) => [Some(x), None],
            Inst::Add(a, b) | Inst::Sub(a, b) | Inst::Mul(a, b) | Inst::MaxMagnitude(a, b) => {
                [Some(a), Some(b)]
            }
        };
        pair.into_iter().flatten()
    }

    /// The parameters it reads.
    pub fn params(self) -> impl Iterator<Item = ParamId> {
        let all = match self {
            Inst::Load(p) => [Some(p), None, None],
            Inst::Gather { rows, map, weights } => [Some(rows), Some(map), weights],
            _ => [None, None, None],
        };
        all.into_iter().flatten()
    }
}

/// An instruction with what is known of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The instruction.
    pub inst: Inst,
    /// What its value varies over.
    pub space: Space,
    /// Whether it depends on what the ranks exchanged.
    pub after_exchange: bool,
    /// The user's name for it, if it has one.
    pub name: Option<String>,
}

/// An output, bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundOutput {
    /// The user's name.
    pub name: String,
    /// Its type in the return type.
    pub role: Role,
    /// What it is in memory.
    pub tensor: Tensor,
    /// The parameter whose memory it takes.
    pub in_place: Option<ParamId>,
}

/// A graph bound to dims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The pattern's name.
    pub name: String,
    /// What it is specialised for.
    pub dims: Dims,
    /// All parameters of the graph, absent ones too; [`Dims::present`] tells them apart.
    pub params: Vec<Param>,
    /// What each of them is in memory.
    pub tensors: Vec<Tensor>,
    /// Its outputs, in order.
    pub outputs: Vec<BoundOutput>,
    /// Its instructions, in order; operands come first.
    pub lines: Vec<Line>,
}

impl Program {
    /// The line that computes `reg`.
    pub fn line(&self, reg: Reg) -> &Line {
        &self.lines[reg.0 as usize]
    }

    /// Every line with its register.
    pub fn regs(&self) -> impl Iterator<Item = (Reg, &Line)> {
        self.lines.iter().enumerate().map(|(i, l)| (Reg(i as u32), l))
    }

    /// The parameters that exist in this variant, in order.
    pub fn present(&self) -> impl Iterator<Item = (ParamId, &Param)> {
        let present = self.dims.present;
        self.params
            .iter()
            .enumerate()
            .map(|(i, p)| (ParamId(i as u32), p))
            .filter(move |(id, p)| !p.optional || present.has(*id))
    }

    /// The parameter that `id` names.
    pub fn param(&self, id: ParamId) -> &Param {
        &self.params[id.0 as usize]
    }

    /// What `id` is in memory.
    pub fn tensor(&self, id: ParamId) -> &Tensor {
        &self.tensors[id.0 as usize]
    }

    /// The dtype of the elements of `id`.
    pub fn param_dtype(&self, id: ParamId) -> DType {
        self.tensor(id).dtype
    }

    /// Whether ranks exchange anything at run time.
    pub fn exchanges(&self) -> bool {
        self.lines.iter().any(|l| l.inst.class() == Class::Exchange)
    }
}

impl Graph {
    /// Binds the graph, which has passed [`check`](crate::check::check), to dims; see [`lower`].
    ///
    /// # Errors
    /// As [`lower`].
    pub fn bind(&self, dims: &Dims) -> Result<Program, crate::BindError> {
        lower(self, dims)
    }
}
