use seamline::prelude::*;

#[fused_pattern]
fn computes_with_it(x: Tokens) -> (Tokens, Tokens, PerToken<f32>) {
    let (q, scale) = quant_fp8_per_token(x);
    let y = x + q;
    let z = -q;
    (y, z, scale)
}

fn main() {}
