//! `layer_norm(x, w, b, eps)`: `(d * s) * w + b`, with `d = x - mean(x)` and `s = 1 / sqrt(mean(d²) + eps)`.

use super::{OperandKind, OperandSpec, ResultSpec, Spec};
use crate::program::{Inst, Reduction};

pub(super) const SPEC: Spec = Spec {
    name: "layer_norm",
    operands: &[
        OperandSpec::new("x", OperandKind::ROWS),
        OperandSpec::new("w", OperandKind::WEIGHT),
        OperandSpec::new("b", OperandKind::WEIGHT),
        OperandSpec::new("eps", OperandKind::UNIFORM),
    ],
    results: &[ResultSpec::ROWS],
    collective: false,
    // Two passes: the variance of what the mean has been taken off, not a difference of two large sums.
    lower: |lowering, call| {
        let (x, w) = (lowering.value(call, 0)?, lowering.value(call, 1)?);
        let (b, eps) = (lowering.value(call, 2)?, lowering.value(call, 3)?);
        let sum = lowering.push(Inst::Reduce(x, Reduction::Sum));
        let mean = lowering.push(Inst::DivideBy(sum, lowering.dims().hidden));
        let deviation = lowering.push(Inst::Sub(x, mean));
        let squares = lowering.push(Inst::Reduce(deviation, Reduction::SumOfSquares));
        let scale = lowering.inverse_deviation(squares, eps);
        let scaled = lowering.push(Inst::Mul(deviation, scale));
        let weighted = lowering.push(Inst::Mul(scaled, w));
        Ok(vec![lowering.push(Inst::Add(weighted, b))])
    },
};
