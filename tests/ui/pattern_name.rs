use seamline::prelude::*;

#[fused_pattern]
fn __(x: Tokens) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern]
fn channels(x: Tokens, w: Channels) -> Tokens {
    let y = x * w;
    y
}

fn main() {}
