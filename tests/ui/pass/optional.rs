//! An `Option` on either side of `+` and `-`, in `+=`, and as the weights of `finalize`.

use seamline::prelude::*;

#[fused_pattern]
pub fn either_side(
    x: Tokens,
    a: Option<Tokens>,
    b: Option<Tokens<f32>>,
    bias: Option<Channels<f32>>,
    offset: Option<PerToken>,
) -> (Tokens, Tokens) {
    let left = a + x;
    let right = x - b;
    let mut sum = bias - left - offset;
    sum += a;
    sum += bias;
    (right, sum)
}

#[fused_pattern(top_k = 6)]
pub fn unweighted_finalize(rows: Permuted, map: RowMap, weights: Option<ExpertWeights>) -> Tokens {
    let out = finalize(rows, map, weights);
    out
}

#[fused_pattern]
pub fn optional_of_the_same_shape(
    x: Tokens,
    w: Channels,
    bias: Option<Channels>,
    g: PerToken,
    h: Option<PerToken>,
) -> Tokens {
    let scale = w + bias;
    let gate = h + g;
    let out = x * scale * gate;
    out
}
