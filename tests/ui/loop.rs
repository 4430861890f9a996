use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> Tokens {
    let mut z = x;
    for _ in 0..8 {
        z += y;
    }
    z
}

fn main() {}
