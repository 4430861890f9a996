//! Docs, `cfg` and lint levels reach what is generated; names of the language stay names.

#![deny(missing_docs, unused, clippy::all)]

use seamline::prelude::*;

/// Not in this build, and nor is what it would generate.
#[cfg(any())]
#[fused_pattern]
pub fn absent(x: Tokens) -> Nonsense {
    let y = -x;
    y
}

/// In this build.
#[fused_pattern]
#[cfg(any(unix, windows))]
#[allow(missing_docs)]
pub fn present(r#in: Tokens, into: Tokens, list: Tokens) -> Tokens {
    let r#type = r#in + into + list;
    r#type
}
