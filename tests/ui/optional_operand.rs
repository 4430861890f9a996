use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, shared: Option<Tokens>, w: Option<Channels>) -> (Tokens, Tokens) {
    let scaled = x * shared;
    let normed = rms_norm(x, w, 1e-6);
    (scaled, normed)
}

fn main() {}
