use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> Tokens {
    let z = rms_norm(x, y);
    z
}

fn main() {}
