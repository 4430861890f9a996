use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> Tokens {
    let z = x * 1e39 + y * 1e-60;
    z
}

fn main() {}
