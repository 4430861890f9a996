//! The `#[fused_pattern]` attribute of [seamline](https://docs.rs/seamline).
