use seamline::prelude::*;

#[fused_pattern]
fn pattern((x, y): Tokens, z: Tokens) -> Tokens {
    let sum = z + z;
    sum
}

#[fused_pattern]
fn unnamed(_: Tokens, z: Tokens) -> Tokens {
    let sum = z + z;
    sum
}

fn main() {}
