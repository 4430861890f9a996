use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Token, y: Vec<f32>) -> Tokens {
    let z = x + y;
    z
}

fn main() {}
