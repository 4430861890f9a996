use seamline::prelude::*;

struct Seams;

impl Seams {
    #[fused_pattern]
    pub fn pattern(&self, x: Tokens) -> Tokens {
        let y = -x;
        y
    }
}

fn main() {}
