//! The runtime half of [seamline](https://docs.rs/seamline): compiles, loads and launches kernels.
//!
//! ```text
//! Group ──> Rank ──┐
//! Pattern ─────────┴─ prepare ──> Kernel ── launch(queue, bundle) ──> check ── pack ──> executor
//! ```
//!
//! `prepare` does all that is slow: it binds dims, compiles, loads, allocates exchange memory, and makes sure that
//! the ranks of a group agree. `launch` checks a bundle against what was prepared, packs it into the kernel's
//! argument words and hands them to the executor: the GPU (feature `cuda`), or an [`Executor`] on the host. Without
//! the feature nothing here knows CUDA.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod args;
mod check;
#[cfg(feature = "cuda")]
pub mod cuda;
mod error;
pub mod executor;
mod explain;
mod fork;
mod group;
mod host;
mod kernel;
mod launch;
mod memory;
mod options;
mod pack;
mod pattern;
mod plan;
mod prepare;
mod queue;
mod reference;
mod region;
mod rendezvous;
mod signature;
mod status;
pub mod testing;
pub mod untyped;
mod variant;

pub use args::{Input, Output};
pub use error::{Error, ErrorKind};
pub use executor::Executor;
pub use explain::Explanation;
pub use group::{Group, Rank, reset};
pub use kernel::{KeepAlive, Kernel};
pub use launch::launch_all;
pub use options::Prepare;
pub use pattern::{Bundle, Pattern};

pub use queue::Queue;
pub use reference::Reference;
pub use seamline_codegen::schedule::Schedule;
pub use status::{Fault, Status};
pub use variant::Variant;
