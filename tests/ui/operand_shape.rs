use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, w: Channels, s: PerToken) -> (Tokens, Tokens) {
    let y = rms_norm(w, s, x);
    let z = all_reduce(s) + y;
    (y, z)
}

fn main() {}
