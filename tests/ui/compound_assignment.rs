use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> Tokens {
    let mut z = x;
    z -= y;
    z *= y;
    z
}

fn main() {}
