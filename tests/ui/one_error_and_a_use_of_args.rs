//! The bundle is whole beside an error in the body, so nothing but that error is reported.

use seamline::prelude::*;

/// A seam.
#[fused_pattern(hidden = 64, dtype = f32)]
pub fn add_norm(x: Tokens, mut residual: Tokens, bias: Option<Channels>, eps: Scalar) -> (Tokens, Tokens) {
    residual = all_reduce(x) / residual + bias;
    let normed = rms_norm(residual, 1.0, eps);
    (residual, normed)
}

fn main() {
    let x = vec![1f32; 64];
    let (mut residual, mut normed) = (vec![0f32; 64], vec![0f32; 64]);
    let args = AddNormArgs {
        tokens: 1,
        x: (&x).into(),
        residual: (&mut residual).into(),
        bias: None,
        eps: 1e-6,
        normed: (&mut normed).into(),
    };
    assert_eq!(args.tokens(), 1);
    assert_eq!(AddNorm::GRAPH.name, "add_norm");
}
