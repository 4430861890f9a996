//! Every pair of shapes under every operator.

use seamline::prelude::*;

#[fused_pattern]
pub fn pairs(
    x: Tokens,
    y: Tokens<f32>,
    w: Channels,
    v: Channels<f32>,
    g: PerToken,
    h: PerToken<f32>,
    s: Scalar,
    r: Scalar,
) -> Tokens {
    let tokens = x + y - x * y
        + (x * w - w * x + w)
        + (g - x + x * g + g)
        + (s * x + x * s - s)
        + (2.0 * x + x * 0.5 - 1.0);
    let channels = (w + v - w * v) * (s * w + w * s - s) * (2.0 * w + w * 2.0 - 3.0) + (3.0 - w) + (s - w);
    let rows = (g + h - g * h) * (s * g + g * s - s) * (2.0 * g + g * 2.0 - 3.0) + (3.0 - g) + (s - g);
    let uniform = (s + r - s * r) * (2.0 + s) * (s - 2.0) + 0.25 * (1.0 - r) * 2.0;
    let outer = w * g + g * w - (w + g) - (g + w) - (w - g) - (g - w);
    let mut out = tokens + channels * rows + outer * uniform;
    out += x;
    out += w;
    out += g;
    out += s;
    out += 1.0;
    out = -out - (-channels) * (-rows) * (-uniform) * -1.0;
    let mut scale = w * v;
    scale += w;
    scale += s;
    scale += 1.0;
    scale = scale * 2.0;
    let mut gate = g * h;
    gate += g;
    gate += s;
    gate += 1.0;
    let mut number = 2.0;
    number += s;
    number = number * 2.0 - r;
    let mut factor = s * number;
    factor += s;
    factor += 1.0;
    let result = out * scale * gate * factor;
    result
}

/// Numbers are f32 whatever they look like, also among themselves.
#[fused_pattern]
pub fn literals(x: Tokens) -> Tokens {
    let half = 1.0 - 0.5f32;
    let big = 1_000 + 1e3 + 2.;
    let out = x * half * big * (2.0 * 3.0) - -1.5;
    out
}
