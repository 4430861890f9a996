//! Ready-made patterns: the seams that models have, and what to copy when yours differs.
//!
//! Nothing in them is fixed: `hidden`, `top_k` and the dtype are bound at `prepare`. A fn with
//! `#[fused_pattern(hidden = 7168, …)]` of your own does the same with some of that fixed, or with a body that is
//! not here. `seamline list` prints them, and `seamline show` what they become.
//!
//! What the parameters are called is what FlashInfer, TensorRT-LLM, vLLM and SGLang call them.

use crate::Graph;
use crate::prelude::*;

/// The seam behind a mixture of experts: DeepSeek-V3, R1 and V3.2, Kimi-K2 and K2.5, GLM-4.5 and GLM-5, Qwen3-MoE.
///
/// Sums each token's expert rows with the router's weights (a `routed_scaling_factor` folded into them), adds the
/// shared expert if there is one, sums over the ranks, adds the residual, and norms for the next layer.
#[fused_pattern(crate = crate)]
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

/// As [`MoeFinalizeArResidualRmsnorm`], with Gemma's norm, which scales by `1 + w`: Qwen3-Next, Qwen3.5, MiniMax-M3.
///
/// A shared expert that is gated comes gated.
#[fused_pattern(crate = crate)]
pub fn moe_finalize_ar_residual_gemma_rmsnorm(
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
    let norm_out = rms_norm(residual_out, 1.0 + rms_gamma, eps);
    (residual_out, norm_out)
}

/// As [`MoeFinalizeArResidualRmsnorm`], with an f32 norm weight and no shared expert: gpt-oss (H = 2880, K = 4).
#[fused_pattern(crate = crate)]
pub fn moe_finalize_ar_residual_rmsnorm_f32_gamma(
    gemm2_out: Permuted,
    expanded_idx_to_permuted_idx: RowMap,
    expert_scale_factor: ExpertWeights<f32>,
    residual_in: Tokens,
    rms_gamma: Channels<f32>,
    eps: Scalar,
) -> (Tokens, Tokens) {
    let local = finalize(gemm2_out, expanded_idx_to_permuted_idx, expert_scale_factor);
    let residual_out = all_reduce(local) + residual_in;
    let norm_out = rms_norm(residual_out, rms_gamma, eps);
    (residual_out, norm_out)
}

/// The sum of the experts over the ranks and no more: the last layer, or an engine that norms elsewhere.
#[fused_pattern(crate = crate)]
pub fn moe_finalize_ar(
    gemm2_out: Permuted,
    expanded_idx_to_permuted_idx: RowMap,
    expert_scale_factor: ExpertWeights<f32>,
    shared_expert_output: Option<Tokens>,
) -> Tokens {
    let local = finalize(gemm2_out, expanded_idx_to_permuted_idx, expert_scale_factor) + shared_expert_output;
    let moe_out = all_reduce(local);
    moe_out
}

/// The seam behind a tensor-parallel projection: Llama, Qwen, Mistral, and every attention block in front of a
/// mixture of experts. FlashInfer's `kARResidualRMSNorm`.
#[fused_pattern(crate = crate)]
pub fn ar_residual_rmsnorm(
    allreduce_in: Tokens,
    residual_in: Tokens,
    rms_gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    let residual_out = all_reduce(allreduce_in) + residual_in;
    let norm_out = rms_norm(residual_out, rms_gamma, eps);
    (residual_out, norm_out)
}

/// As [`ArResidualRmsnorm`], with the residual stream updated in place, as vLLM's fused norms do it.
#[fused_pattern(crate = crate)]
pub fn ar_residual_rmsnorm_in_place(
    allreduce_in: Tokens,
    mut residual: Tokens,
    rms_gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    residual += all_reduce(allreduce_in);
    let norm_out = rms_norm(residual, rms_gamma, eps);
    (residual, norm_out)
}

/// Norms on both sides of the residual add, with weights of `1 + w`: Gemma-3.
#[fused_pattern(crate = crate)]
pub fn ar_sandwich_gemma_rmsnorm(
    allreduce_in: Tokens,
    residual_in: Tokens,
    post_gamma: Channels,
    pre_gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    let residual_out = rms_norm(all_reduce(allreduce_in), 1.0 + post_gamma, eps) + residual_in;
    let norm_out = rms_norm(residual_out, 1.0 + pre_gamma, eps);
    (residual_out, norm_out)
}

/// The residual add with a multiplier on what is added: Granite-3.1 (0.22).
#[fused_pattern(crate = crate)]
pub fn ar_scaled_residual_rmsnorm(
    allreduce_in: Tokens,
    residual_in: Tokens,
    residual_multiplier: Scalar,
    rms_gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    let residual_out = all_reduce(allreduce_in) * residual_multiplier + residual_in;
    let norm_out = rms_norm(residual_out, rms_gamma, eps);
    (residual_out, norm_out)
}

/// Residual add and norm without ranks: any model on one GPU.
#[fused_pattern(crate = crate)]
pub fn residual_rmsnorm(
    x: Tokens,
    residual_in: Tokens,
    rms_gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    let residual_out = x + residual_in;
    let norm_out = rms_norm(residual_out, rms_gamma, eps);
    (residual_out, norm_out)
}

/// A ready-made pattern, for lists.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Listed {
    /// The pattern's graph.
    pub graph: &'static Graph,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Models that have this seam.
    pub models: &'static str,
}

/// Every ready-made pattern.
pub const ALL: &[Listed] = &[
    Listed {
        graph: MoeFinalizeArResidualRmsnorm::GRAPH,
        about: "MoE finalize + shared expert + all-reduce + residual + RMSNorm",
        models: "DeepSeek-V3/R1/V3.2, Kimi-K2/K2.5, GLM-4.5/5, Qwen3-MoE",
    },
    Listed {
        graph: MoeFinalizeArResidualGemmaRmsnorm::GRAPH,
        about: "the same with a norm of 1 + w",
        models: "Qwen3-Next, Qwen3.5, MiniMax-M3",
    },
    Listed {
        graph: MoeFinalizeArResidualRmsnormF32Gamma::GRAPH,
        about: "the same with an f32 norm weight, no shared expert",
        models: "gpt-oss",
    },
    Listed {
        graph: MoeFinalizeAr::GRAPH,
        about: "MoE finalize + shared expert + all-reduce",
        models: "last layers; engines that norm elsewhere",
    },
    Listed {
        graph: ArResidualRmsnorm::GRAPH,
        about: "all-reduce + residual + RMSNorm",
        models: "Llama, Qwen, Mistral; attention of MoE models",
    },
    Listed {
        graph: ArResidualRmsnormInPlace::GRAPH,
        about: "the same with the residual in place",
        models: "as above",
    },
    Listed {
        graph: ArSandwichGemmaRmsnorm::GRAPH,
        about: "all-reduce + RMSNorm + residual + RMSNorm, 1 + w",
        models: "Gemma-3",
    },
    Listed {
        graph: ArScaledResidualRmsnorm::GRAPH,
        about: "all-reduce + residual with a multiplier + RMSNorm",
        models: "Granite-3.1",
    },
    Listed {
        graph: ResidualRmsnorm::GRAPH,
        about: "residual + RMSNorm, no ranks",
        models: "any, on one GPU",
    },
];
