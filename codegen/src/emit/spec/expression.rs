//! One instruction as a C++ expression of one channel, or of one value per token.

use super::Cut;
use super::phase::Lanes;
use crate::program::{Inst, Reg};
use crate::tensor::Access;

impl Cut<'_> {
    /// The name of a computed value.
    pub(super) fn local(&self, reg: Reg) -> String {
        format!("r{}", reg.0)
    }

    /// The user's name for a value.
    pub(super) fn comment(&self, reg: Reg) -> String {
        self.program.line(reg).name.as_ref().map_or(String::new(), |n| format!("  // {n}"))
    }

    /// How a value per token or launch is read.
    pub(super) fn read_scalar(&self, reg: Reg) -> String {
        match self.program.line(reg).inst {
            Inst::Const(bits) => literal(bits),
            Inst::Load(p) => match self.program.tensor(p).ty.access {
                Access::Value => format!("args.{}.value", self.field(p)),
                Access::Weights | Access::Activations => format!("row.{}", self.field(p)),
            },
            _ if self.carried(reg) => format!("row.{}", self.local(reg)),
            _ => self.local(reg),
        }
    }

    /// How the loop `lanes` of phase `at` reads channel j of `reg`.
    pub(super) fn read(&self, reg: Reg, at: usize, lanes: &Lanes) -> String {
        self.read_kept(reg).unwrap_or_else(|| match lanes.computes(reg) && !self.outlives(reg, at, lanes) {
            true => self.local(reg),
            false => format!("{}[j]", self.whole(reg)),
        })
    }

    /// How channel j of `reg` is read, if that is the same in every loop.
    pub(super) fn read_kept(&self, reg: Reg) -> Option<String> {
        let line = self.program.line(reg);
        match line.inst {
            _ if !line.space.has_channels() => Some(self.read_scalar(reg)),
            Inst::Load(p) => Some(format!("get(row.{}[v], j)", self.field(p))),
            Inst::Exchange(_) => Some("row.exchanged[v][j]".into()),
            Inst::Round(..) => Some(format!("get({}, j)", self.whole(reg))),
            _ => None,
        }
    }

    /// A lane's 8 channels of a computed value, packed or as an array.
    pub(super) fn whole(&self, reg: Reg) -> String {
        match self.program.line(reg).inst {
            Inst::Exchange(_) => "row.exchanged[v]".into(),
            _ if self.live.contains(&reg) => format!("row.{}[v]", self.local(reg)),
            _ => self.local(reg),
        }
    }

    /// The value of `reg`, of operands that `read` reads.
    pub(super) fn expression(&self, reg: Reg, read: impl Fn(Reg) -> String) -> String {
        match self.program.line(reg).inst {
            Inst::Neg(x) => format!("neg({})", read(x)),
            Inst::Add(a, b) => format!("{} + {}", read(a), read(b)),
            Inst::Sub(a, b) => format!("{} - {}", read(a), read(b)),
            Inst::Mul(a, b) => format!("{} * {}", read(a), read(b)),
            Inst::DivideBy(x, n) => format!("device::divide({}, {:?}f)", read(x), n as f32),
            Inst::Reciprocal(x) => format!("1.0f / {}", read(x)),
            Inst::MaxMagnitude(a, b) => format!("max_magnitude({}, {})", read(a), read(b)),
            Inst::Round(x, dtype) => format!("rounded<{dtype}>({})", read(x)),
            Inst::InverseSqrt(x) => format!("device::inverse_sqrt({})", read(x)),
            inst => unreachable!("{inst:?} is no expression"),
        }
    }
}

/// An f32 as C++: the shortest decimal that converts back to it, or its bits.
fn literal(bits: u32) -> String {
    let x = f32::from_bits(bits);
    match x.is_finite() {
        true => format!("{x:?}f"),
        false => format!("device::from_bits({bits:#010x}u)"),
    }
}
