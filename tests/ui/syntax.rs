use seamline::prelude::*;

#[fused_pattern(hidden = )]
fn pattern(x: Tokens) -> Tokens {
    let y = -x;
    y
}

fn main() {}
