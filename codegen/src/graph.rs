//! The graph of a pattern, as written: one node per operation, in source order, in SSA form.
//!
//! A graph is what the macro emits as a `const`, and what the command parses from a source file. It
//! knows no sizes: [`crate::program`] binds it to [`crate::Dims`] and makes every rounding, store and
//! reduction of the contract an explicit instruction.

use crate::op::Operation;
use crate::tensor::Dim;
use crate::{DType, Role};
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

/// Most operands of a [`Call`].
pub const MAX_OPERANDS: usize = 4;

/// What an operation is called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A parameter that is not a value by itself.
    Param(ParamId),
    /// An earlier value.
    Value(ValueId),
}

impl From<ParamId> for Operand {
    fn from(id: ParamId) -> Self {
        Operand::Param(id)
    }
}

impl From<ValueId> for Operand {
    fn from(id: ValueId) -> Self {
        Operand::Value(id)
    }
}

/// A call of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Call {
    /// What is called.
    pub operation: Operation,
    operands: [Option<Operand>; MAX_OPERANDS],
}

impl Call {
    /// A call with `operands`, in order.
    ///
    /// # Panics
    /// With more than [`MAX_OPERANDS`] of them.
    pub const fn new(operation: Operation, operands: &[Operand]) -> Call {
        let mut all = [None; MAX_OPERANDS];
        let mut i = 0;
        while i < operands.len() {
            all[i] = Some(operands[i]);
            i += 1;
        }
        Call { operation, operands: all }
    }

    /// Its operands, in order.
    pub fn operands(&self) -> impl Iterator<Item = Operand> + use<> {
        self.operands.into_iter().flatten()
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.operation)?;
        f.debug_list().entries(self.operands()).finish()
    }
}

/// What a node computes. Operands are earlier nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// A call of an operation. Where that has several results, the node itself is their tuple, and no value.
    Call(Call),
    /// One result of a call that has several, counted from 0.
    Result(ValueId, u32),
}

impl Op {
    /// A call of `operation` with `operands`, in order.
    ///
    /// # Panics
    /// With more than [`MAX_OPERANDS`] of them.
    pub const fn call(operation: Operation, operands: &[Operand]) -> Op {
        Op::Call(Call::new(operation, operands))
    }

    /// The values it reads, in order.
    pub fn operands(self) -> impl Iterator<Item = ValueId> {
        let mut all = [None; MAX_OPERANDS];
        match self {
            Op::Param(_) | Op::Literal(_) => {}
            Op::Neg(x) | Op::Result(x, _) => all[0] = Some(x),
            Op::Add(a, b) | Op::Sub(a, b) | Op::Mul(a, b) => (all[0], all[1]) = (Some(a), Some(b)),
            Op::Call(call) => {
                for (to, operand) in all.iter_mut().zip(call.operands) {
                    *to = match operand {
                        Some(Operand::Value(x)) => Some(x),
                        _ => None,
                    };
                }
            }
        };
        all.into_iter().flatten()
    }

    /// The parameters it reads.
    pub fn params(self) -> impl Iterator<Item = ParamId> {
        let mut all = [None; MAX_OPERANDS];
        match self {
            Op::Param(p) => all[0] = Some(p),
            Op::Call(call) => {
                for (to, operand) in all.iter_mut().zip(call.operands) {
                    *to = match operand {
                        Some(Operand::Param(p)) => Some(p),
                        _ => None,
                    };
                }
            }
            _ => {}
        };
        all.into_iter().flatten()
    }

    /// The operation it calls, if it is a call.
    pub const fn operation(self) -> Option<Operation> {
        match self {
            Op::Call(call) => Some(call.operation),
            _ => None,
        }
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
    /// Its type in the return type.
    pub role: Role,
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
        self.nodes.iter().filter_map(|n| n.op.operation()).any(|o| o.spec().collective)
    }

    /// Whether top_k is a dim of it.
    pub fn has_top_k(&self) -> bool {
        self.params.iter().any(|p| p.role.tensor().has(Dim::TopK))
    }

    /// A stable hash of everything that decides what the pattern computes. Ranks compare it.
    pub fn fingerprint(&self) -> [u8; 32] {
        Sha256::digest(format!("{self:?}")).into()
    }
}
