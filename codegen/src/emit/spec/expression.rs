//! One instruction as a C++ expression.

use super::Cut;
use crate::Role;
use crate::program::{Inst, Reg};

impl Cut<'_> {
    /// The name of a computed value.
    pub(super) fn local(&self, reg: Reg) -> String {
        format!("r{}", reg.0)
    }

    /// How phase `at` reads `reg`.
    pub(super) fn read(&self, reg: Reg, at: usize) -> String {
        let line = self.program.line(reg);
        match line.inst {
            Inst::Const(bits) => literal(bits),
            Inst::Load(p) => {
                let field = self.field(p);
                match self.program.param(p).role {
                    Role::Scalar => format!("args.{field}.value"),
                    Role::PerToken(_) => format!("in.{field}"),
                    Role::Channels(_) => format!("unpack(constant.{field})"),
                    _ => format!("unpack(in.{field})"),
                }
            }
            Inst::AllReduce(_) => "exchanged".into(),
            _ if !line.space.has_channels() => format!("scalar.{}", self.local(reg)),
            _ if self.phases.phase(reg) == Some(at) => self.local(reg),
            Inst::Round(..) => format!("unpack(live.{})", self.local(reg)),
            _ => format!("live.{}", self.local(reg)),
        }
    }

    /// The value of `reg`, computed in phase `at`.
    pub(super) fn expression(&self, reg: Reg, at: usize) -> String {
        let read = |r| self.read(r, at);
        match self.program.line(reg).inst {
            Inst::Finalize { rows, map, weights } => {
                let weights = match weights {
                    Some(w) => format!("args.{}", self.field(w)),
                    None => "(const NoWeights*)0".into(),
                };
                let name = self.field(rows);
                format!(
                    "finalize<Spec, Geo::BATCH>(\n      args.{name}, args.rows{}, args.{}, {weights},\n      at, &args.status->out_of_range)",
                    &name[2..],
                    self.field(map)
                )
            }
            Inst::Neg(x) => format!("neg({})", read(x)),
            Inst::Sqrt(x) => format!("sqrt({})", read(x)),
            Inst::Add(a, b) => format!("add({}, {})", read(a), read(b)),
            Inst::Sub(a, b) => format!("sub({}, {})", read(a), read(b)),
            Inst::Mul(a, b) => format!("mul({}, {})", read(a), read(b)),
            Inst::Div(a, b) if self.program.line(a).inst == Inst::Const(1f32.to_bits()) => {
                format!("reciprocal({})", read(b))
            }
            Inst::Div(a, b) => format!("div({}, {})", read(a), read(b)),
            Inst::Round(x, dtype) => format!("pack<{dtype}>({})", read(x)),
            Inst::RowSum { x, squares: true } => format!("lane_sum_of_squares<HIDDEN>({}, at)", read(x)),
            Inst::RowSum { x, squares: false } => format!("lane_sum<HIDDEN>({}, at)", read(x)),
            inst @ (Inst::Load(_) | Inst::Const(_) | Inst::AllReduce(_) | Inst::Store(..)) => {
                unreachable!("{inst:?} is read or stored, not computed")
            }
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
