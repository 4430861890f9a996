use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens<f32, f32>, s: Scalar<f32>) -> Tokens {
    let y = x * s;
    y
}

fn main() {}
