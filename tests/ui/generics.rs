use seamline::prelude::*;

#[fused_pattern]
fn pattern<T>(x: Tokens) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern]
fn clause(x: Tokens) -> Tokens
where
    f32: Copy,
{
    let y = -x;
    y
}

fn main() {}
