use seamline::prelude::*;

#[fused_pattern]
async fn async_pattern(x: Tokens) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern]
unsafe fn unsafe_pattern(x: Tokens) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern]
const fn const_pattern(x: Tokens) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern]
extern "C" fn extern_pattern(x: Tokens) -> Tokens {
    let y = -x;
    y
}

fn main() {}
