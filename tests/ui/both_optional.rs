use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, a: Option<Tokens>, b: Option<Tokens>) -> Tokens {
    let y = x + (a + b);
    y
}

fn main() {}
