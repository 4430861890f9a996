use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> (Tokens, Tokens) {
    let z = x + y;
    (z, x * y)
}

fn main() {}
