use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> Tokens {
    const TWO: f32 = 2.0;
    let z = x + y;
    z
}

fn main() {}
