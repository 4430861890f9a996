//! Fused CUDA kernels for the seams between transformer layers, written as Rust functions.

pub mod dsl;
pub mod patterns;
pub mod testing;

pub use seamline_codegen::{DType, Graph};
pub use seamline_macros::fused_pattern;
#[cfg(feature = "cuda")]
pub use seamline_runtime::cuda;
pub use seamline_runtime::{
    Bundle, Error, ErrorKind, Explanation, Fault, Group, Input, KeepAlive, Kernel, Output, Pattern, Prepare,
    Queue, Rank, Status, Variant, args, executor, launch_all, reset, untyped,
};
#[cfg(feature = "sim")]
pub use seamline_sim as sim;

/// Everything a pattern is written with, and what runs it.
pub mod prelude {
    // Writing patterns.
    pub use crate::dsl::{
        Channels, ExpertWeights, PerToken, Permuted, RowMap, Scalar, Tokens, all_reduce, bf16, f16, finalize,
        rms_norm,
    };
    pub use crate::fused_pattern;

    // Running them.
    #[cfg(feature = "sim")]
    pub use crate::sim::Simulated;
    pub use crate::{Bundle, DType, Group, Input, Kernel, Output, Pattern, Prepare, Queue, Rank, launch_all};
}

/// What generated code names. Not public API.
#[doc(hidden)]
pub mod __private {
    pub use seamline_codegen::{
        DType, Elem, Fixed, Graph, Node, Op, Output as GraphOutput, OutputId, Param, ParamId, Role, ValueId,
    };
    pub use seamline_runtime::args::{Arg, ArgList};
    pub use seamline_runtime::{Bundle, Input, Output, Pattern};
    pub use std::borrow::Cow;
}

/// The README's code compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
