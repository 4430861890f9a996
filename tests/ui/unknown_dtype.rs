use seamline::prelude::*;

#[fused_pattern(dtype = fp8)]
fn pattern(x: Tokens) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern]
fn element(x: Tokens<f64>) -> Tokens {
    let y = -x;
    y
}

fn main() {}
