use seamline::prelude::*;

#[fused_pattern(crate = renamed)]
fn pattern(x: Tokens, bias: Option<Channels>, eps: Scalar) -> Tokens {
    let y = x * eps + bias;
    y
}

fn main() {}
