//! The seam of DeepSeek-V3 and Kimi-K2: every kind of argument but an update in place.

use seamline::prelude::*;

/// The seam of DeepSeek-V3 and Kimi-K2/K2.5: one launch between MoE GEMM2 and the next layer.
#[fused_pattern(hidden = 7168, top_k = 8, dtype = bf16)]
pub fn moe_finalize_ar_residual_rmsnorm(
    gemm2_out: Permuted,
    expanded_idx_to_permuted_idx: RowMap,
    expert_scale_factor: ExpertWeights<f32>,
    shared_expert_output: Option<Tokens>,
    residual_in: Tokens,
    rms_gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    let local = finalize(gemm2_out, expanded_idx_to_permuted_idx, expert_scale_factor) + shared_expert_output;
    let residual_out = all_reduce(local) + residual_in;
    let norm_out = rms_norm(residual_out, rms_gamma, eps);
    (residual_out, norm_out)
}
