//! dtypes that differ from the pattern's, on both sides.

use seamline::prelude::*;

#[fused_pattern(dtype = bf16)]
pub fn mixed(
    rows: Permuted<f16>,
    map: RowMap,
    weights: ExpertWeights<bf16>,
    residual: Tokens<f32>,
    gamma: Channels<f32>,
    gate: PerToken<f16>,
) -> (Tokens<f32>, Tokens, Tokens<f16>) {
    let sum = finalize(rows, map, weights) * gate + residual;
    let normed = rms_norm(sum, gamma, 1e-5);
    let doubled = normed + normed;
    (sum, normed, doubled)
}
