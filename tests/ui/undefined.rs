use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, gamma: Channels) -> Tokens {
    let z = x * gama + EPS + std::f32::consts::PI;
    z
}

fn main() {}
