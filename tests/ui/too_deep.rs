use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens) -> Tokens {
    let y = ----------------------------------------x;
    y
}

fn main() {}
