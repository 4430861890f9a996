//! What a pattern is written in: types, operators and operations.
//!
//! The body of a fn under [`#[fused_pattern]`](crate::fused_pattern) is ordinary Rust over these items, so
//! that the compiler checks it and editors know it. It is never called: the items hold nothing and compute
//! nothing, and none of the types can be made outside a signature. What a kernel does is stated with each
//! operation, bit for bit.
//!
//! | type | shape | dtype |
//! |---|---|---|
//! | [`Tokens`] | `[T, H]` | the pattern's, or its argument |
//! | [`Permuted`] | `[P, H]` | likewise |
//! | [`RowMap`] | `[T, K]` | i32 |
//! | [`ExpertWeights`] | `[T, K]` | the pattern's, or its argument |
//! | [`Channels`] | `[H]` | likewise |
//! | [`PerToken`] | `[T]` | likewise |
//! | [`Scalar`] | one value | f32 |
//! | [`Quantized`] | `[T, H]` | its argument, e4m3; results only |
//!
//! T is tokens, H hidden size, K top_k, P permuted rows.
//!
//! ```
//! use seamline::prelude::*;
//!
//! /// Sums over the ranks, adds the residual, and norms as Gemma does.
//! #[fused_pattern(dtype = bf16)]
//! pub fn reduce_add_norm(
//!     partial: Tokens,
//!     mut residual: Tokens,
//!     bias: Option<Channels>,
//!     weight: Channels<f32>,
//!     eps: Scalar,
//! ) -> (Tokens, Tokens) {
//!     residual += all_reduce(partial) + bias;
//!     let norm_out = rms_norm(residual, 1.0 + weight, eps);
//!     (residual, norm_out)
//! }
//!
//! assert!(ReduceAddNorm::GRAPH.has_collective());
//! ```
//!
//! # Arithmetic
//! `+`, `-`, `*` and unary `-` work among `Tokens`, `Channels`, `PerToken`, `Scalar` and decimal numbers,
//! elementwise, with `[H]` and `[T]` spread over `[T, H]`. Whatever the dtypes, the result is f32, rounded
//! once per written operation to nearest even, subnormals kept; nothing is contracted to a fused
//! multiply-add. It is rounded to a storage dtype in two places only: on its way to other ranks, and where
//! the pattern returns it. Later uses of a returned value read the rounded one.
//!
//! An `Option` of `Tokens`, `Channels` or `PerToken` can be added to and subtracted from a value that is
//! always there. Absent, it adds nothing: no code for it exists in that kernel.

mod arithmetic;
mod operations;

pub use half::{bf16, f16};
pub use operations::{
    ExpertWeighting, NormWeight, Uniform, all_reduce, finalize, layer_norm, quant_fp8_per_token, rms_norm,
};
pub use seamline_codegen::e4m3;

use std::marker::PhantomData;

/// Stands for the pattern's dtype: what a type without an argument has.
#[derive(Clone, Copy, Debug)]
pub enum PatternDType {}

/// A row of H channels for each token: `[T, H]`.
///
/// Activations, residuals, results. What is computed is `Tokens<f32>`, whatever it is computed from.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<D = PatternDType>(PhantomData<D>);

/// Rows of H channels, grouped by expert: `[P, H]`, what the second MoE GEMM leaves. For [`finalize`].
#[derive(Clone, Copy, Debug)]
pub struct Permuted<D = PatternDType>(PhantomData<D>);

/// For each token and each of its K experts, the row of [`Permuted`] that has its product: `[T, K]`, i32.
///
/// -1 where this rank does not hold it. Any other index outside `0..P` counts as -1, and is counted in the
/// kernel's status.
#[derive(Clone, Copy, Debug)]
pub struct RowMap(());

/// The router's weight of each token's experts: `[T, K]`.
#[derive(Clone, Copy, Debug)]
pub struct ExpertWeights<D = PatternDType>(PhantomData<D>);

/// One value per channel: `[H]`. Constant weights, such as a norm's: a kernel reads them before the kernel in
/// front has finished.
#[derive(Clone, Copy, Debug)]
pub struct Channels<D = PatternDType>(PhantomData<D>);

/// One value per token: `[T]`.
#[derive(Clone, Copy, Debug)]
pub struct PerToken<D = PatternDType>(PhantomData<D>);

/// What a quantiser gives beside its scales, for the next GEMM to read: `[T, H]`. It can be returned, and nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Quantized<D = e4m3>(PhantomData<D>);

/// One f32 for the launch, passed by value.
#[derive(Clone, Copy, Debug)]
pub struct Scalar(());

/// A computed value where a declared one is expected: in the result, or assigned to a parameter.
#[doc(hidden)]
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be stored as `{To}`: they have different shapes")]
pub trait Store<To> {}

impl<D, E> Store<Tokens<E>> for Tokens<D> {}
impl<D, E> Store<Channels<E>> for Channels<D> {}
impl<D, E> Store<PerToken<E>> for PerToken<D> {}
impl<D> Store<Quantized<D>> for Quantized<D> {}
impl Store<Scalar> for Scalar {}
impl Store<Scalar> for f32 {}
impl Store<f32> for f32 {}
impl Store<f32> for Scalar {}

/// What the generated copy of a body converts with. It is type-checked and never runs.
#[doc(hidden)]
pub fn store<From: Store<To>, To>(_: From) -> To {
    unreachable!("a pattern's body is never called")
}
