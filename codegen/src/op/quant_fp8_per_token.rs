//! `quant_fp8_per_token(x)`: each token's row as e4m3, and its scale.

use super::{OperandKind, OperandSpec, ResultSpec, Spec};
use crate::DType;
use crate::program::{Inst, Reduction, Space};

/// The largest finite e4m3.
const LARGEST: u32 = 448;

/// The least scale, `1 / (448 * 512)`: a row of zeros has one too, whose inverse is finite.
const LEAST_SCALE: f32 = 1.0 / (LARGEST as f32 * 512.0);

pub(super) const SPEC: Spec = Spec {
    name: "quant_fp8_per_token",
    operands: &[OperandSpec::new("x", OperandKind::ROWS)],
    results: &[
        ResultSpec { space: Space::TokenChannel, quantized: Some(DType::E4m3) },
        ResultSpec { space: Space::Token, quantized: None },
    ],
    collective: false,
    // The rounding to e4m3 is that of the result: it is returned and read by nobody else.
    lower: |lowering, call| {
        let x = lowering.value(call, 0)?;
        let largest = lowering.push(Inst::Reduce(x, Reduction::MaxMagnitude));
        let scaled = lowering.push(Inst::DivideBy(largest, LARGEST));
        let least = lowering.push(Inst::Const(LEAST_SCALE.to_bits()));
        let scale = lowering.push(Inst::MaxMagnitude(scaled, least));
        let inverse = lowering.push(Inst::Reciprocal(scale));
        Ok(vec![lowering.push(Inst::Mul(x, inverse)), scale])
    },
};
