//! The operations that are called by name.

use super::{Channels, ExpertWeights, PerToken, Permuted, Quantized, RowMap, Scalar, Tokens, e4m3};
use std::marker::PhantomData;

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// What [`finalize`] weights rows by: [`ExpertWeights`], or an `Option` of them. Absent means 1.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the weights of experts: pass `ExpertWeights`, or an `Option` of them"
)]
pub trait ExpertWeighting: Sealed {}
impl<D> Sealed for ExpertWeights<D> {}
impl<D> ExpertWeighting for ExpertWeights<D> {}
impl<D> Sealed for Option<ExpertWeights<D>> {}
impl<D> ExpertWeighting for Option<ExpertWeights<D>> {}

/// What a norm multiplies by, or adds: [`Channels`], or one value for all.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the weight of a norm: pass `Channels`, or one value for all channels"
)]
pub trait NormWeight: Sealed {}
impl<D> Sealed for Channels<D> {}
impl<D> NormWeight for Channels<D> {}
impl NormWeight for Scalar {}
impl NormWeight for f32 {}

/// One value for the launch: a [`Scalar`] or a number.
#[diagnostic::on_unimplemented(message = "`{Self}` is not one value: pass a `Scalar` or a number")]
pub trait Uniform: Sealed {}
impl Sealed for Scalar {}
impl Uniform for Scalar {}
impl Sealed for f32 {}
impl Uniform for f32 {}

/// MoE finalize: for each token the weighted sum of its K rows, `Σₖ weights[t, k] · rows[map[t, k]]`.
///
/// # Shapes
/// `rows [P, H]`, `map [T, K]`, `weights [T, K]`, result `[T, H]`.
///
/// # Rounding
/// A chain of fused multiply-adds in f32, in the order of k, from +0.0. A row of index -1 is skipped, never
/// multiplied by zero, so a NaN behind it does not matter; with all rows skipped the sum is +0.0. Without
/// weights, each weight is 1.
pub fn finalize<D>(_rows: Permuted<D>, _map: RowMap, _weights: impl ExpertWeighting) -> Tokens<f32> {
    Tokens(PhantomData)
}

/// The sum of `x` over the ranks of the group, the same on every rank.
///
/// A pattern has at most one; everything that is to be summed over ranks is added before it. What is read behind it (a
/// residual, the weights of a norm) is equal on all ranks: each computes the rest for itself, from its own.
///
/// # Shapes
/// `x [T, H]`, result `[T, H]`.
///
/// # Rounding
/// Each rank's `x` is rounded once to the wire's dtype (the pattern's, or `wire = …` of the attribute). The
/// sum starts from rank 0's and adds the others in rank order, in f32. With one rank there is no wire, and
/// the result is `x`.
pub fn all_reduce<D>(_x: Tokens<D>) -> Tokens<f32> {
    Tokens(PhantomData)
}

/// Root mean square norm over channels: `x / sqrt(mean(x²) + eps) · w`.
///
/// Gemma's is `rms_norm(x, 1.0 + w, eps)`; without a weight it is `rms_norm(x, 1.0, eps)`.
///
/// # Shapes
/// `x [T, H]`, `w [H]` or one value, `eps` one value, result `[T, H]`.
///
/// # Rounding
/// In f32: `mean = Σx² / H`, `s = 1 / sqrt(mean + eps)`, result `(x · s) · w`, division and square root as
/// IEEE 754 has them. The sum of squares follows one fixed tree that depends on H alone, so a token's bits
/// do not depend on the batch it is in.
pub fn rms_norm<D>(_x: Tokens<D>, _w: impl NormWeight, _eps: impl Uniform) -> Tokens<f32> {
    Tokens(PhantomData)
}

/// Layer norm over channels: `(x - mean(x)) / sqrt(var(x) + eps) · w + b`.
///
/// As PyTorch's `torch.nn.functional.layer_norm` defines it: the variance is that of the row, divided by H. Without a
/// bias it is `layer_norm(x, w, 0.0, eps)`.
///
/// # Shapes
/// `x [T, H]`, `w` and `b` `[H]` or one value, `eps` one value, result `[T, H]`.
///
/// # Rounding
/// Two passes, in f32: `mean = Σx / H`, `d = x - mean`, `var = Σd² / H`, `s = 1 / sqrt(var + eps)`, result
/// `((d · s) · w) + b`, each written operation rounded once, division and square root as IEEE 754 has them. Both sums
/// follow the fixed tree of [`rms_norm`], so a token's bits do not depend on the batch it is in.
pub fn layer_norm<D>(
    _x: Tokens<D>,
    _w: impl NormWeight,
    _b: impl NormWeight,
    _eps: impl Uniform,
) -> Tokens<f32> {
    Tokens(PhantomData)
}

/// Quantises each token's row to FP8 (E4M3) by a scale of its own: the row, and the scale that gives it back, `q · scale`.
///
/// The scale is the row's largest magnitude over 448, and at least 1 / (448 · 512), so that a row of zeros has one: as
/// vLLM's dynamic per-token quantisation has it (`dynamic_per_token_scaled_fp8_quant`), which divides by the scale where this
/// multiplies by its inverse.
///
/// # Shapes
/// `x [T, H]`, results `[T, H]` in e4m3 and `[T]` in f32. The first can be returned, as `Quantized<e4m3>`, and read by
/// nothing; the second is a value, returned as `PerToken<f32>`.
///
/// # Rounding
/// In f32: `scale = max(max|x| / 448, 1 / (448 · 512))`, `q = x · (1 / scale)`, each written operation rounded once,
/// divisions as IEEE 754 has them. `q` is rounded to e4m3 to nearest even; what is beyond ±448 becomes that. A NaN in a row makes
/// its scale NaN and the whole row 0x7F; an infinity makes the scale infinite, itself NaN and all else zero.
pub fn quant_fp8_per_token<D>(_x: Tokens<D>) -> (Quantized<e4m3>, PerToken<f32>) {
    (Quantized(PhantomData), PerToken(PhantomData))
}
