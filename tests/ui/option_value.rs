use seamline::prelude::*;

#[fused_pattern(hidden = "7168")]
fn pattern_0(x: Tokens) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern(dtype)]
fn pattern_1(x: Tokens) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern(hidden(7168))]
fn pattern_2(x: Tokens) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern(hidden = 7168usize)]
fn pattern_3(x: Tokens) -> Tokens {
    let y = -x;
    y
}

fn main() {}
