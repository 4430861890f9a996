//! What travels, and between how many.

use seamline::prelude::*;

#[fused_pattern(hidden = 2_880, ranks = 8, dtype = f16, wire = f32,)]
pub fn f32_wire(x: Tokens) -> Tokens {
    let out = all_reduce(x);
    out
}
