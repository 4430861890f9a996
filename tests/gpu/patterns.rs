//! The patterns that are run.

use seamline::prelude::*;

/// The seam of a mixture of experts, with all that is optional in it.
#[fused_pattern]
pub fn seam(
    rows: Permuted,
    map: RowMap,
    weights: Option<ExpertWeights<f32>>,
    shared: Option<Tokens>,
    residual_in: Tokens,
    gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    let local = finalize(rows, map, weights) + shared;
    let residual_out = all_reduce(local) + residual_in;
    let norm_out = rms_norm(residual_out, gamma, eps);
    (residual_out, norm_out)
}

/// Without residual and norm.
#[fused_pattern]
pub fn reduce_only(
    rows: Permuted,
    map: RowMap,
    weights: Option<ExpertWeights<f32>>,
    shared: Option<Tokens>,
) -> Tokens {
    let local = finalize(rows, map, weights) + shared;
    let moe_out = all_reduce(local);
    moe_out
}

/// In place, as engines keep the residual stream.
#[fused_pattern]
pub fn in_place(x: Tokens, mut residual: Tokens, gamma: Channels<f32>, eps: Scalar) -> (Tokens, Tokens) {
    residual += all_reduce(x);
    let norm_out = rms_norm(residual, 1.0 + gamma, eps);
    (residual, norm_out)
}

/// Norms before the exchange and after it, and values that cross it.
#[fused_pattern(wire = f32)]
pub fn crossing(x: Tokens, scale: PerToken<f32>, gamma: Channels, eps: Scalar) -> (Tokens, Tokens) {
    let normed = rms_norm(x, gamma, eps);
    let sum_out = all_reduce(normed * scale) - normed;
    let norm_out = rms_norm(sum_out, gamma, eps);
    (sum_out, norm_out)
}

/// The seam of a mixture of experts whose weights are of some dtype, with an optional residual.
macro_rules! weighted {
    ($(#[$doc:meta])* $name:ident, $($weights:tt)+) => {
        $(#[$doc])*
        #[fused_pattern]
        pub fn $name(
            rows: Permuted,
            map: RowMap,
            weights: Option<$($weights)+>,
            shared: Option<Tokens>,
            residual_in: Option<Tokens>,
            gamma: Channels,
            eps: Scalar,
        ) -> (Tokens, Tokens) {
            let local = finalize(rows, map, weights) + shared;
            let residual_out = all_reduce(local) + residual_in;
            let norm_out = rms_norm(residual_out, gamma, eps);
            (residual_out, norm_out)
        }
    };
}

weighted!(
    /// The weights are of the pattern's dtype.
    weighted, ExpertWeights
);
weighted!(
    /// The weights are f32, whatever the pattern's dtype.
    weighted_f32, ExpertWeights<f32>
);
weighted!(
    /// The weights are bf16.
    weighted_bf16, ExpertWeights<bf16>
);
weighted!(
    /// The weights are f16.
    weighted_f16, ExpertWeights<f16>
);
