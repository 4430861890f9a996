use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> Tokens {
    let z: Tokens<f32> = x + y;
    z
}

fn main() {}
