use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> Tokens {
    let (z, _) = x + y;
    z
}

fn main() {}
