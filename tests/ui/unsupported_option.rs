use seamline::prelude::*;

#[fused_pattern]
fn pattern(
    rows: Option<Permuted>,
    map: Option<RowMap>,
    weights: ExpertWeights,
    bias: Option<Scalar>,
) -> Tokens {
    let y = finalize(rows, map, weights) + bias;
    y
}

fn main() {}
