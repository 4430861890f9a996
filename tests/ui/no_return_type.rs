use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens) {
    let y = -x;
    y
}

fn main() {}
