//! The compiler half of [seamline](https://docs.rs/seamline): from a Rust function to CUDA C++.
//!
//! ```text
//! fn ── parse ──> Graph ── check ──> bind dims ──> Program ── phases ── schedule ──> CUDA C++
//!                                                     └──> reference (Rust, bit-exact)
//! ```
//!
//! Nothing here knows a CUDA driver or does I/O. Features: `parse` (Rust source to [`Graph`]), `emit`
//! (CUDA C++), `reference` (results, bit for bit).

pub mod abi;
pub mod check;
mod dims;
mod dtype;
#[cfg(feature = "emit")]
pub mod emit;
mod graph;
pub mod numerics;
pub mod op;
#[cfg(feature = "parse")]
pub mod parse;
pub mod phases;
pub mod program;
#[cfg(feature = "reference")]
pub mod reference;
mod role;
pub mod schedule;
pub mod tensor;
#[cfg(feature = "reference")]
pub mod workload;

pub use dims::{
    BindError, Dims, MAX_ARGS, MAX_HIDDEN, MAX_RANKS, MAX_ROW_STRIDE, MAX_TOKENS, MAX_TOP_K, Presence,
    Request, Strides,
};
pub use dtype::{DType, UnknownDType, e4m3};
pub use graph::{
    Call, Elem, Fixed, Graph, MAX_OPERANDS, Node, Op, Operand, Output, OutputId, Param, ParamId, ValueId,
};
pub use op::Operation;
pub use program::Program;
pub use role::Role;
pub use tensor::{Tensor, TensorType};
