use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> Tokens {
    let product = x * y;
    let z = x + y;
    z
}

fn main() {}
