use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> Tokens {
    let z = x * 0xff + y * "2";
    z
}

fn main() {}
