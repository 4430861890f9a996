//! Fused CUDA kernels for the seams between transformer layers, written as Rust functions.
//!
//! A fn under [`#[fused_pattern]`](fused_pattern) describes what lies between two GEMMs. It becomes a type, by which the kernel
//! is prepared once, and a bundle, by which it is launched:
//!
//! ```
//! use seamline::prelude::*;
//!
//! /// Between two layers on one GPU.
//! #[fused_pattern]
//! pub fn add_norm(x: Tokens, mut residual: Tokens, weight: Channels, eps: Scalar) -> (Tokens, Tokens) {
//!     residual += x;
//!     let normed = rms_norm(residual, weight, eps);
//!     (residual, normed)
//! }
//!
//! // On a GPU: `Group::single(&context)`, device slices, and a stream in place of `Queue::host()`.
//! let rank = Group::reference(1)?.remove(0);
//! let kernel = AddNorm::prepare(&rank, &Prepare::new(16).hidden(4).dtype(DType::F32))?;
//!
//! let (x, weight) = (vec![1.0f32, 2.0, 3.0, 4.0], vec![1.0f32; 4]);
//! let (mut residual, mut normed) = (vec![1.0f32, 0.0, -1.0, -2.0], vec![0.0f32; 4]);
//! kernel.launch(Queue::host(), AddNormArgs {
//!     tokens: 1,
//!     x: (&x).into(),
//!     residual: (&mut residual).into(), // in place: one argument
//!     weight: (&weight).into(),
//!     eps: 0.0,
//!     normed: (&mut normed).into(),
//! })?;
//! assert_eq!((residual, normed), (vec![2.0; 4], vec![1.0; 4]));
//! # Ok::<(), seamline::Error>(())
//! ```
//!
//! | for | see |
//! |---|---|
//! | what a body may say, and its bits | [`dsl`] |
//! | patterns that are there already | [`patterns`] |
//! | ranks, on a GPU and on the CPU | [`Group`], [`Rank`] |
//! | what is fixed once, and what that costs | [`Pattern::prepare`], [`Prepare`] |
//! | what a launch takes | [`Input`], [`Output`], [`Queue`] |
//! | one rank, all ranks | [`Kernel::launch`], [`launch_all`] |
//! | CUDA graphs | [`Kernel`](Kernel#captured-graphs) |
//! | a rank that does not come | [`Status`], [`reset`] |
//! | tests of an engine | [`testing::check`] |

pub mod dsl;
pub mod patterns;
pub mod testing;

pub use seamline_codegen::{DType, Graph, UnknownDType};
/// ```
/// use seamline::prelude::*;
///
/// #[fused_pattern(dtype = bf16)]
/// pub fn my_seam(partial: Tokens, residual_in: Tokens, bias: Option<Channels>) -> Tokens<f32> {
///     let residual_out = all_reduce(partial) + residual_in + bias;
///     residual_out
/// }
///
/// fn bundle<'a>(x: &'a [bf16], residual: &'a [bf16], out: &'a mut [f32]) -> MySeamArgs<'a> {
///     MySeamArgs { tokens: 1, partial: x.into(), residual_in: residual.into(), bias: None, residual_out: out.into() }
/// }
/// assert_eq!(MySeam::GRAPH.name, "my_seam");
/// ```
///
pub use seamline_macros::fused_pattern;
#[cfg(feature = "cuda")]
pub use seamline_runtime::cuda;
pub use seamline_runtime::{
    Bundle, Definition, Error, ErrorKind, Explanation, Fault, Grid, Group, Input, KeepAlive, Kernel, Output,
    Pattern, Prepare, Queue, Rank, Schedule, Status, Variant, args, erased, executor, launch_all, reset,
};
#[cfg(feature = "sim")]
pub use seamline_sim as sim;

/// Everything a pattern is written with, and what runs it.
pub mod prelude {
    // Writing patterns.
    pub use crate::dsl::{
        Channels, ExpertWeights, PerToken, Permuted, Quantized, RowMap, Scalar, Tokens, all_reduce, bf16,
        e4m3, f16, finalize, layer_norm, quant_fp8_per_token, rms_norm,
    };
    pub use crate::fused_pattern;

    // Running them.
    pub use crate::Definition as _;
    #[cfg(feature = "sim")]
    pub use crate::sim::Simulated;
    pub use crate::{Bundle, DType, Group, Input, Kernel, Output, Pattern, Prepare, Queue, Rank, launch_all};
}

/// What generated code names. Not public API.
#[doc(hidden)]
pub mod __private {
    pub use seamline_codegen::{
        DType, Elem, Fixed, Graph, Node, Op, Operand, Operation, Output as GraphOutput, OutputId, Param,
        ParamId, Role, ValueId,
    };
    pub use seamline_runtime::args::{Arg, ArgList};
    pub use seamline_runtime::{Bundle, Definition, Input, Output};
    pub use std::borrow::Cow;
}

/// The README's code compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
