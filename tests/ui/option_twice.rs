use seamline::prelude::*;

#[fused_pattern(hidden = 7168, hidden = 4096)]
fn pattern(x: Tokens) -> Tokens {
    let y = -x;
    y
}

fn main() {}
