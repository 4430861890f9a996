//! `rms_norm(x, w, eps)`: `(x * s) * w`, with `s = 1 / sqrt(mean(x²) + eps)`.

use super::{OperandKind, OperandSpec, ResultSpec, Spec};
use crate::program::{Inst, Reduction};

pub(super) const SPEC: Spec = Spec {
    name: "rms_norm",
    operands: &[
        OperandSpec::new("x", OperandKind::ROWS),
        OperandSpec::new("w", OperandKind::WEIGHT),
        OperandSpec::new("eps", OperandKind::UNIFORM),
    ],
    results: &[ResultSpec::ROWS],
    collective: false,
    lower: |lowering, call| {
        let (x, w) = (lowering.value(call, 0)?, lowering.value(call, 1)?);
        let eps = lowering.value(call, 2)?;
        let squares = lowering.push(Inst::Reduce(x, Reduction::SumOfSquares));
        let scale = lowering.inverse_deviation(squares, eps);
        let scaled = lowering.push(Inst::Mul(x, scale));
        Ok(vec![lowering.push(Inst::Mul(scaled, w))])
    },
};
