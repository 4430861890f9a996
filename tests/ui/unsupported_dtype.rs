use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, w: Channels<i32>) -> Tokens<i32> {
    let y = x * w;
    y
}

fn main() {}
