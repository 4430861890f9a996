use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, w: Option<Channels>) -> Tokens {
    let y = rms_norm(x, 1.0 + w, 1e-6);
    y
}

fn main() {}
