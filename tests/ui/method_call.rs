use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> Tokens {
    let z = x.all_reduce() + y.sqrt();
    z
}

fn main() {}
