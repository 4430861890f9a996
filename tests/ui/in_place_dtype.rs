use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, mut residual: Tokens<f32>) -> Tokens {
    residual += x;
    residual
}

fn main() {}
