use seamline::prelude::*;

struct Seams;

impl Seams {
    #[fused_pattern]
    fn pattern(x: Tokens) -> Tokens {
        let y = -x;
        y
    }
}

fn main() {}
