use seamline::prelude::*;

#[fused_pattern]
fn pattern(attention: Tokens, residual: Tokens, w: Channels, mlp: Tokens) -> Tokens {
    let first = rms_norm(all_reduce(attention) + residual, w, 1e-6);
    let second = all_reduce(mlp * first);
    second
}

fn main() {}
