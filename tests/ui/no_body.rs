use seamline::prelude::*;

#[fused_pattern]
fn pattern(x: Tokens) -> Tokens;

trait Seams {
    #[fused_pattern]
    fn pattern(x: Tokens) -> Tokens;
}

fn main() {}
