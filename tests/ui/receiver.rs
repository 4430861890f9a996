use seamline::prelude::*;

#[fused_pattern]
fn pattern(self, x: Tokens) -> Tokens {
    let y = -x;
    y
}

fn main() {}
