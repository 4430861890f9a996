//! Patterns that compile: each file is a module of `tests/bundle.rs`, and is parsed from its text there too.

pub mod arithmetic;
pub mod attributes;
pub mod dtypes;
pub mod gemma;
pub mod in_place;
pub mod moe_finalize;
pub mod optional;
pub mod paths;
pub mod plain;
pub mod renamed;
pub mod unbound;
pub mod visibility;
pub mod wire;
