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

#[fused_pattern]
fn of_nothing(x: Tokens) -> Tokens {
    let (_, _) = quant_fp8_per_token(x);
    let y = -x;
    y
}

fn main() {}
