//! The graph of a pattern, as written: one node per operation, in source order, in SSA form.
//!
//! A graph is what the macro emits as a `const`, and what the command parses from a source file. It
//! knows no sizes: [`crate::program`] binds it to [`crate::Dims`] and makes every rounding, store and
//! reduction of the contract an explicit instruction.

use crate::DType;
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// Index of a node of a [`Graph`]; the value it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

/// Index of a parameter of a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParamId(pub u32);

/// Index of an output of a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OutputId(pub u32);

/// The dtype of a parameter or output: the pattern's, or one that is spelled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elem {
    /// The dtype the pattern is bound to.
    Pattern,
    /// `Tokens<f32>` and the like.
    Fixed(DType),
}

impl Elem {
    /// The dtype once the pattern's is known.
    pub const fn bind(self, pattern: DType) -> DType {
        match self {
            Elem::Pattern => pattern,
            Elem::Fixed(d) => d,
        }
    }
}

/// What a parameter is: it decides shape, dtype and when the kernel may read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// `Tokens`: `[T, H]`.
    Tokens(Elem),
    /// `Permuted`: `[P, H]`, rows grouped by expert.
    Permuted(Elem),
    /// `RowMap`: `[T, K]` i32; -1 where this rank does not hold the row.
    RowMap,
    /// `ExpertWeights`: `[T, K]`.
    ExpertWeights(Elem),
    /// `Channels`: `[H]`, constant weights; the only inputs read before the PDL wait.
    Channels(Elem),
    /// `PerToken`: `[T]`.
    PerToken(Elem),
    /// `Scalar`: one f32, passed by value.
    Scalar,
}

impl Role {
    /// The type's name in a signature.
    pub const fn type_name(self) -> &'static str {
        match self {
            Role::Tokens(_) => "Tokens",
            Role::Permuted(_) => "Permuted",
            Role::RowMap => "RowMap",
            Role::ExpertWeights(_) => "ExpertWeights",
            Role::Channels(_) => "Channels",
            Role::PerToken(_) => "PerToken",
            Role::Scalar => "Scalar",
        }
    }

    /// The shape, in the words of the documentation.
    pub const fn shape(self) -> &'static str {
        match self {
            Role::Tokens(_) => "[T, H]",
            Role::Permuted(_) => "[P, H]",
            Role::RowMap | Role::ExpertWeights(_) => "[T, K]",
            Role::Channels(_) => "[H]",
            Role::PerToken(_) => "[T]",
            Role::Scalar => "one value",
        }
    }

    /// The dtype of its elements, once the pattern's is known.
    pub const fn dtype(self, pattern: DType) -> DType {
        match self {
            Role::Tokens(e)
            | Role::Permuted(e)
            | Role::ExpertWeights(e)
            | Role::Channels(e)
            | Role::PerToken(e) => e.bind(pattern),
            Role::RowMap => DType::I32,
            Role::Scalar => DType::F32,
        }
    }
}

/// One parameter of the pattern's fn.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    /// The user's name.
    pub name: Cow<'static, str>,
    /// Its type.
    pub role: Role,
    /// `Option<…>`: may be absent at launch; absent means that no code exists for it.
    pub optional: bool,
    /// The output that is written in its place, for a `mut` parameter that is assigned and returned.
    pub in_place: Option<OutputId>,
}

/// One operation. Operands are earlier nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Op {
    /// The value of a `Tokens`, `Channels`, `PerToken` or `Scalar` parameter.
    Param(ParamId),
    /// A decimal literal, converted once; its f32 bits.
    Literal(u32),
    /// `-x`.
    Neg(ValueId),
    /// `a + b`.
    Add(ValueId, ValueId),
    /// `a - b`.
    Sub(ValueId, ValueId),
    /// `a * b`.
    Mul(ValueId, ValueId),
    /// `finalize(rows, map, weights)`: for each token the weighted sum of its top_k rows.
    Finalize {
        /// A `Permuted`.
        rows: ParamId,
        /// A `RowMap`.
        map: ParamId,
        /// An `ExpertWeights`; absent (an `Option`) means 1.
        weights: ParamId,
    },
    /// `all_reduce(x)`: the sum over the ranks, the same on every rank.
    AllReduce(ValueId),
    /// `rms_norm(x, w, eps)`: `(x * s) * w`, with `s = 1 / sqrt(mean(x²) + eps)`.
    RmsNorm {
        /// What is normalised, over channels.
        x: ValueId,
        /// The weight, one per channel.
        w: ValueId,
        /// Added to the mean of squares.
        eps: ValueId,
    },
}

impl Op {
    /// The values it reads, in order.
    pub fn operands(self) -> impl Iterator<Item = ValueId> {
        let all = match self {
            Op::Param(_) | Op::Literal(_) | Op::Finalize { .. } => [None, None, None],
            Op::Neg(x) | Op::AllReduce(x) => [Some(x), None, None],
            Op::Add(a, b) | Op::Sub(a, b) | Op::Mul(a, b) => [Some(a), Some(b), None],
            Op::RmsNorm { x, w, eps } => [Some(x), Some(w), Some(eps)],
        };
        all.into_iter().flatten()
    }

    /// The parameters it reads.
    pub fn params(self) -> impl Iterator<Item = ParamId> {
        let all = match self {
            Op::Param(p) => [Some(p), None, None],
            Op::Finalize { rows, map, weights } => [Some(rows), Some(map), Some(weights)],
            _ => [None, None, None],
        };
        all.into_iter().flatten()
    }
}

/// A node: an operation and the name of the binding it defines, if the source gives one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// What it computes.
    pub op: Op,
    /// The `let` that names it.
    pub name: Option<Cow<'static, str>>,
}

/// One returned value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    /// The identifier in the returned tuple, which names the bundle's field.
    pub name: Cow<'static, str>,
    /// The value that is returned. Later uses of it read the rounded value.
    pub value: ValueId,
    /// `Tokens` in the return type: `[T, H]` of this dtype.
    pub elem: Elem,
    /// The parameter whose memory it is written to.
    pub in_place: Option<ParamId>,
}

/// What the attribute fixes; the rest is bound at `prepare`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fixed {
    /// `hidden = 7168`.
    pub hidden: Option<u32>,
    /// `top_k = 8`.
    pub top_k: Option<u32>,
    /// `ranks = 8`.
    pub ranks: Option<u32>,
    /// `dtype = bf16`.
    pub dtype: Option<DType>,
    /// `wire = f32`; otherwise the pattern's dtype travels.
    pub wire: Option<DType>,
}

/// A pattern: its signature and body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Graph {
    /// The fn's name.
    pub name: Cow<'static, str>,
    /// Its parameters, in order.
    pub params: Cow<'static, [Param]>,
    /// Its operations, in source order.
    pub nodes: Cow<'static, [Node]>,
    /// What it returns, in order.
    pub outputs: Cow<'static, [Output]>,
    /// What its attribute fixes.
    pub fixed: Fixed,
}

impl Graph {
    /// The parameter that `id` names.
    pub fn param(&self, id: ParamId) -> &Param {
        &self.params[id.0 as usize]
    }

    /// The operation that computes `id`.
    pub fn op(&self, id: ValueId) -> Op {
        self.nodes[id.0 as usize].op
    }

    /// Every node with its id.
    pub fn values(&self) -> impl Iterator<Item = (ValueId, &Node)> {
        self.nodes.iter().enumerate().map(|(i, n)| (ValueId(i as u32), n))
    }

    /// Whether ranks exchange anything.
    pub fn has_collective(&self) -> bool {
        self.nodes.iter().any(|n| matches!(n.op, Op::AllReduce(_)))
    }

    /// Whether top_k is a dim of it.
    pub fn has_top_k(&self) -> bool {
        self.params.iter().any(|p| matches!(p.role, Role::RowMap | Role::ExpertWeights(_)))
    }

    /// A stable hash of everything that decides what the pattern computes. Ranks compare it.
    pub fn fingerprint(&self) -> [u8; 32] {
        Sha256::digest(format!("{self:?}")).into()
    }
}
