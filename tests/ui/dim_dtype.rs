use seamline::prelude::*;

#[fused_pattern(dtype = i32, wire = i32)]
fn pattern(x: Tokens) -> Tokens {
    let y = all_reduce(x);
    y
}

fn main() {}
