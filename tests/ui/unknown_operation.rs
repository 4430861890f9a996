use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> Tokens {
    let z = softmax(x) + rmsnorm(y, 1.0, 1e-6);
    z
}

fn main() {}
