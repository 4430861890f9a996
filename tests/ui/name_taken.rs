use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, x: Tokens, tokens: Tokens, residual: Tokens) -> Tokens {
    let residual = x + tokens + residual;
    residual
}

fn main() {}
