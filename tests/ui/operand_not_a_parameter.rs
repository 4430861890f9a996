use seamline::prelude::*;

#[fused_pattern]
fn pattern(rows: Permuted, map: RowMap, weights: ExpertWeights) -> Tokens {
    let sum = finalize(rows, map, 1.0);
    sum
}

fn main() {}
