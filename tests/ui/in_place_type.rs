use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, mut w: Channels, mut shared: Option<Tokens>) -> (Tokens, Tokens) {
    w = x * w;
    shared = x + shared;
    (w, shared)
}

fn main() {}
