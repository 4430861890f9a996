use seamline::prelude::*;

#[fused_pattern]
fn pattern(
    x0: Tokens, x1: Tokens, x2: Tokens, x3: Tokens, x4: Tokens, x5: Tokens, x6: Tokens, x7: Tokens,
    x8: Tokens, x9: Tokens, x10: Tokens, x11: Tokens, x12: Tokens, x13: Tokens, x14: Tokens, x15: Tokens,
    x16: Tokens, x17: Tokens, x18: Tokens, x19: Tokens, x20: Tokens, x21: Tokens, x22: Tokens, x23: Tokens,
    x24: Tokens, x25: Tokens, x26: Tokens, x27: Tokens, x28: Tokens, x29: Tokens, x30: Tokens, x31: Tokens,
) -> Tokens {
    let sum = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7
        + x8 + x9 + x10 + x11 + x12 + x13 + x14 + x15
        + x16 + x17 + x18 + x19 + x20 + x21 + x22 + x23
        + x24 + x25 + x26 + x27 + x28 + x29 + x30 + x31;
    sum
}

fn main() {}
