use seamline::prelude::*;

#[fused_pattern]
fn takes_what_a_quantiser_gives(x: Tokens, q: Quantized<e4m3>) -> Tokens {
    let y = x + q;
    y
}

fn main() {}
