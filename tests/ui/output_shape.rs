use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, w: Channels, s: Scalar) -> (Tokens, Tokens) {
    let y = x * s;
    let z = 1.0 + w;
    (y, z)
}

fn main() {}
