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
#[cfg(feature = "parse")]
pub mod parse;
pub mod phases;
pub mod program;
#[cfg(feature = "reference")]
pub mod reference;
pub mod schedule;
#[cfg(feature = "reference")]
pub mod workload;

pub use dims::{BindError, Dims, MAX_ARGS, MAX_HIDDEN, MAX_RANKS, MAX_TOKENS, MAX_TOP_K, Presence, Request};
pub use dtype::{DType, UnknownDType};
pub use graph::{Elem, Fixed, Graph, Node, Op, Output, OutputId, Param, ParamId, Role, ValueId};
pub use program::Program;
