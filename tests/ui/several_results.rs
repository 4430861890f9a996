use seamline::prelude::*;

#[fused_pattern]
fn one_name(x: Tokens) -> Tokens {
    let q = quant_fp8_per_token(x);
    q
}

#[fused_pattern]
fn three_names(x: Tokens) -> Tokens {
    let (a, b, c) = quant_fp8_per_token(x);
    a
}

#[fused_pattern]
fn in_an_expression(x: Tokens) -> Tokens {
    let y = x + quant_fp8_per_token(x);
    y
}

fn main() {}
