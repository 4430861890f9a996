use seamline::prelude::*;

#[fused_pattern]
fn pattern(rows: Tokens, map: RowMap, weights: ExpertWeights) -> Tokens {
    let y = finalize(rows, weights, map);
    y
}

fn main() {}
