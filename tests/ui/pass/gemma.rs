//! Gemma's norm scales by `1 + w`, and its sandwich norms what is added too.

use seamline::prelude::*;

#[fused_pattern(dtype = bf16)]
pub fn gemma_sandwich(
    x: Tokens,
    residual_in: Tokens,
    post: Channels,
    pre: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    let normed = rms_norm(all_reduce(x), 1.0 + post, eps);
    let residual_out = residual_in + normed;
    let norm_out = rms_norm(residual_out, 1 + pre, eps);
    (residual_out, norm_out)
}

/// The partial sum is normed before it travels.
#[fused_pattern]
pub fn norm_then_reduce(x: Tokens, w: Channels) -> Tokens {
    let out = all_reduce(rms_norm(x, 1.0 + w, 1e-6));
    out
}

/// A norm without weights.
#[fused_pattern]
pub fn unweighted(x: Tokens, scale: Scalar) -> (Tokens, Tokens) {
    let plain = rms_norm(x, 1.0, 1e-6);
    let scaled = rms_norm(x, scale, scale * 1e-6);
    (plain, scaled)
}
