use seamline::prelude::*;

#[fused_pattern]
fn pattern(#[allow(unused)] x: Tokens) -> Tokens {
    #[allow(unused)]
    let y = -x;
    y
}

fn main() {}
