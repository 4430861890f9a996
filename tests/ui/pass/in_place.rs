//! A `mut` parameter that is assigned and returned is updated in place.

use seamline::prelude::*;

#[fused_pattern]
pub fn add_assign(mut residual: Tokens, x: Tokens, w: Channels, eps: Scalar) -> (Tokens, Tokens) {
    residual += all_reduce(x);
    let norm_out = rms_norm(residual, w, eps);
    (residual, norm_out)
}

#[fused_pattern]
pub fn assign(mut x: Tokens, w: Channels<f32>, eps: Scalar) -> Tokens {
    x = rms_norm(x, w, eps);
    x
}

/// Two parameters swap roles: each is read before it is written.
#[fused_pattern]
pub fn both(mut a: Tokens<f32>, mut b: Tokens<f16>) -> (Tokens<f16>, Tokens<f32>) {
    let sum = a + b;
    b += a * 0.5;
    a = sum;
    (b, a)
}
