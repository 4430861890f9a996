//! A launch that forgets an argument does not compile.

use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens) -> Tokens {
    let y = -x;
    y
}

fn main() {
    let x = vec![1f32; 64];
    let args = PatternArgs { tokens: 1, x: (&x).into() };
    assert_eq!(args.tokens(), 1);
}
