use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, mut residual: Tokens) -> Tokens {
    residual = -x;
    residual
}

fn main() {}
