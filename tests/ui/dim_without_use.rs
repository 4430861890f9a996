use seamline::prelude::*;

#[fused_pattern(top_k = 8, ranks = 8, wire = f32)]
fn pattern(x: Tokens) -> Tokens {
    let y = -x;
    y
}

fn main() {}
