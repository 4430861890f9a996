use seamline::prelude::*;

#[fused_pattern]
fn pattern(mut residual: Tokens, x: Tokens) -> Tokens {
    residual += x;
    let y = residual * x;
    y
}

fn main() {}
