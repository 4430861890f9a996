use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> Tokens {
    let z = x[0] + y.0;
    z
}

fn main() {}
