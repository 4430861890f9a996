use seamline::prelude::*;

#[fused_pattern]
fn pattern(shared: Option<Tokens>) -> Tokens {
    let copy = shared;
    copy
}

fn main() {}
