use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens, shared: Option<Tokens>) -> Tokens {
    let y = match shared {
        Some(shared) => x + shared,
        None => x,
    };
    let z = if true { x } else { y };
    z
}

fn main() {}
