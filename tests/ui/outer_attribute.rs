use seamline::prelude::*;

#[fused_pattern]
#[inline]
fn pattern(x: Tokens) -> Tokens {
    let y = -x;
    y
}

fn main() {}
