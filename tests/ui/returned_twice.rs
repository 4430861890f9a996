use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, y: Tokens) -> (Tokens, Tokens<f32>, Tokens) {
    let sum = x + y;
    let copy = sum;
    (sum, copy, sum)
}

fn main() {}
