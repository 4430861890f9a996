//! Everything is bound at `prepare`.

use seamline::prelude::*;

/// Documented.
#[fused_pattern()]
pub fn unbound(rows: Permuted, map: RowMap, weights: ExpertWeights, residual: Tokens) -> Tokens {
    let out = all_reduce(finalize(rows, map, weights)) + residual;
    out
}
