use seamline::prelude::*;

#[fused_pattern(hidden = "7168")]
fn pattern_0(x: Tokens) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern(dtype)]
fn pattern_1(x: Tokens) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern(hidden(7168))]
fn pattern_2(x: Tokens) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern(hidden = 7168usize)]
fn pattern_3(x: Tokens) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern(hidden = 99999999999, top_k = -1, ranks = 0x1_0000_0000)]
fn pattern_4(rows: Permuted, map: RowMap, weights: ExpertWeights) -> Tokens {
    let y = all_reduce(finalize(rows, map, weights));
    y
}

fn main() {}
