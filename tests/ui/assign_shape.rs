use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, w: Channels, shared: Option<Tokens>) -> (Tokens, Tokens) {
    let mut scale = 2.0;
    scale += w;
    let y = x * scale;
    let mut sum = shared;
    sum = x + sum;
    (y, sum)
}

fn main() {}
