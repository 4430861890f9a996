use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, rows: Permuted) -> Tokens {
    let y = x + rows;
    y
}

fn main() {}
