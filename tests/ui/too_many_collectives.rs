use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> Tokens {
    let sum = all_reduce(x) + all_reduce(y);
    sum
}

fn main() {}
