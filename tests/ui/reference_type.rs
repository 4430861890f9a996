use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: &Tokens<f32>) -> Tokens {
    let y = -x;
    y
}

fn main() {}
