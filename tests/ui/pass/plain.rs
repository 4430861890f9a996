//! No residual, no norm, no ranks.

use seamline::prelude::*;

#[fused_pattern]
pub fn no_residual(x: Tokens, w: Channels, eps: Scalar) -> Tokens {
    let norm_out = rms_norm(all_reduce(x), w, eps);
    norm_out
}

#[fused_pattern]
pub fn no_norm(rows: Permuted, map: RowMap, weights: ExpertWeights) -> Tokens {
    let out = all_reduce(finalize(rows, map, weights));
    out
}

#[fused_pattern]
pub fn add(x: Tokens, y: Tokens) -> (Tokens,) {
    let sum = x + y;
    (sum,)
}

/// A value may have the name of an earlier one, and another name for an earlier one.
#[fused_pattern]
pub fn shadowed(x: Tokens, w: Channels) -> Tokens {
    let y = x * w;
    let alias = y;
    let y = alias + y;
    let out = (y);
    out
}
