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
mod backend;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod erased;
mod error;
mod explain;
mod group;
mod host;
mod kernel;
mod launch;
mod pattern;
mod plan;
mod prepare;
mod queue;
mod sync;
pub mod testing;

pub use args::{Input, Output};
pub use error::{Error, ErrorKind};
pub use explain::{Explanation, Grid};
pub use group::status::{Fault, Status};
pub use group::{Group, Rank, reset};
pub use host::executor::{self, Executor};
pub use host::reference::Reference;
pub use kernel::{KeepAlive, Kernel};
pub use launch::launch_all;
pub use pattern::{Bundle, Definition, Pattern};
pub use plan::options::Prepare;
pub use plan::variant::Variant;
pub use queue::Queue;
pub use seamline_codegen::schedule::Schedule;
