use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens) -> Tokens {
    let y = all_reduce::<f32>(x);
    y
}

fn main() {}
