//! Fused CUDA kernels for the seams between transformer layers, written as Rust functions.

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
