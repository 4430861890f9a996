use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, w: Channels) -> (Channels, Option<Tokens>) {
    let y = x * w;
    let z = x + w;
    (y, z)
}

fn main() {}
