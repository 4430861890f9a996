use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> Tokens {
    let z = x * 2.0f64 + y * 2u8;
    z
}

fn main() {}
