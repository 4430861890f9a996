//! The compiler's own errors are at the user's own tokens, once.

use seamline::fused_pattern;

#[fused_pattern]
fn pattern(x: seamline::dsl::Tokens) -> Tokens {
    let y = seamline::dsl::all_reduce(x);
    y
}

fn main() {}
