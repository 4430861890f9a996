use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, w: Channels, eps: Scalar) -> Tokens {
    let y = rms_norm(x, w, 1e-6);
    y
}

fn main() {}
