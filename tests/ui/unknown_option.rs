use seamline::prelude::*;

#[fused_pattern(hiden = 7168)]
fn pattern(x: Tokens) -> Tokens {
    let y = -x;
    y
}

fn main() {}
