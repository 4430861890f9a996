//! The runtime half of [seamline](https://docs.rs/seamline): compiles, loads and launches kernels.

pub mod args;
mod pattern;

pub use args::{Input, Output};
pub use pattern::{Bundle, Pattern};
