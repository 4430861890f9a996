//! `all_reduce(x)`: the sum over the ranks, the same on every rank.

use super::{OperandKind, OperandSpec, ResultSpec, Spec};
use crate::program::Inst;

pub(super) const SPEC: Spec = Spec {
    name: "all_reduce",
    operands: &[OperandSpec::new("x", OperandKind::ROWS)],
    results: &[ResultSpec::ROWS],
    collective: true,
    lower: |lowering, call| {
        let x = lowering.value(call, 0)?;
        if lowering.dims().ranks == 1 {
            return Ok(vec![x]);
        }
        let wire = lowering.push(Inst::Round(x, lowering.dims().wire));
        Ok(vec![lowering.push(Inst::Exchange(wire))])
    },
};
