//! Which token's rows lie where.

use super::kind::Kind;
use super::rng::Rng;
use crate::program::Program;
use std::cmp::Reverse;

/// The scale of the routed experts of Kimi-K2 (`routed_scaling_factor`).
const ROUTED_SCALING: f32 = 2.827;

/// The routing of one rank.
pub(super) struct Routing {
    pub(super) top_k: usize,
    /// `[T, K]`: row indices.
    pub(super) map: Vec<i32>,
    /// `[T, K]`.
    pub(super) weights: Vec<f32>,
    /// Per permuted row, the entry of the map that points at it.
    pub(super) owners: Vec<Option<usize>>,
}

/// How many rows trtllm-gen allocates for `expanded` = tokens × top_k rows, each expert's padded to a
/// multiple of `tile` (FlashInfer's `getMaxPermutedPaddedCount`): as if as many experts as can be were
/// one row into a tile.
///
/// At 384 experts and a tile of 16, the 16 rows of 2 tokens of top 8 take 256, and the 512 rows of 64
/// tokens take 6272.
pub fn padded_rows(expanded: usize, experts: usize, tile: usize) -> usize {
    let started = experts.min(expanded);
    (started + (expanded - started) / tile) * tile
}

/// The tile of trtllm-gen's GEMMs: a power of two near the rows per expert.
fn tile(expanded: usize, experts: usize) -> usize {
    (expanded / experts).next_power_of_two().clamp(16, 128)
}

impl Routing {
    pub(super) fn new(program: &Program, tokens: usize, kind: Kind, seed: u64, rank: usize) -> Routing {
        let (top_k, ranks) = (program.dims.top_k as usize, program.dims.ranks as usize);
        let rng = Rng::new(seed).fork(u64::MAX);
        match kind {
            Kind::Engine { experts, expert_parallel } => {
                let experts = (experts as usize).max(top_k).max(1);
                let owned = match expert_parallel {
                    true => experts * rank / ranks..experts * (rank + 1) / ranks,
                    false => 0..experts,
                };
                // The router runs on every rank, on equal inputs.
                Routing::engine(tokens, top_k, experts, owned, rng)
            }
            _ => Routing::scattered(tokens, top_k, kind, rng.fork(rank as u64)),
        }
    }

    fn engine(
        tokens: usize,
        top_k: usize,
        experts: usize,
        owned: std::ops::Range<usize>,
        mut rng: Rng,
    ) -> Routing {
        let popularity: Vec<f32> = (0..experts).map(|_| 0.5 * rng.normal()).collect();
        let mut chosen = Vec::with_capacity(tokens * top_k);
        let mut weights = Vec::with_capacity(tokens * top_k);
        for _ in 0..tokens {
            let mut scores: Vec<(f32, usize)> = popularity
                .iter()
                .enumerate()
                .map(|(expert, bias)| (sigmoid(rng.normal() + bias), expert))
                .collect();
            scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            scores.truncate(top_k);
            let sum: f32 = scores.iter().map(|(score, _)| score).sum();
            weights.extend(scores.iter().map(|(score, _)| score / sum * ROUTED_SCALING));
            chosen.extend(scores.iter().map(|&(_, expert)| expert));
        }
        let expanded = chosen.len();
        let tile = tile(expanded, experts);
        let mut by_expert: Vec<usize> = (0..expanded).filter(|&at| owned.contains(&chosen[at])).collect();
        by_expert.sort_by_key(|&at| (chosen[at], at));
        let mut map = vec![-1; expanded];
        let mut owners = vec![None; padded_rows(expanded, owned.len(), tile)];
        let mut row = 0;
        for rows in by_expert.chunk_by(|&a, &b| chosen[a] == chosen[b]) {
            for (i, &at) in rows.iter().enumerate() {
                map[at] = (row + i) as i32;
                owners[row + i] = Some(at);
            }
            row += rows.len().next_multiple_of(tile);
        }
        Routing { top_k, map, weights, owners }
    }

    /// Rows in random order, some of them unused, and what the kind does to the map.
    fn scattered(tokens: usize, top_k: usize, kind: Kind, mut rng: Rng) -> Routing {
        let expanded = tokens * top_k;
        let count = match kind {
            Kind::NoRows => 0,
            _ => expanded + expanded / 8 + 3,
        };
        let mut order: Vec<(u64, usize)> = (0..count).map(|row| (rng.next(), row)).collect();
        order.sort_by_key(|&(key, row)| Reverse((key, row)));
        let mut routing = Routing { top_k, map: Vec::new(), weights: Vec::new(), owners: vec![None; count] };
        for at in 0..expanded {
            let row = order.get(at).map(|&(_, row)| row);
            let (index, weight) = match (kind, row) {
                (Kind::NanBehindDropped, _) if rng.one_in(3) => (-1, f32::NAN),
                (Kind::AllDropped, _) if (at / top_k).is_multiple_of(2) => (-1, f32::INFINITY),
                (Kind::OutOfRange, _) if rng.one_in(3) => {
                    let past = count as i32;
                    (rng.pick([past, past + 1, i32::MIN, -2, i32::MAX, -1]), f32::NAN)
                }
                (_, None) => (rng.pick([-1, 0, 1, i32::MAX]), f32::NAN),
                (_, Some(row)) => {
                    routing.owners[row] = Some(at);
                    (row as i32, weight(kind, &mut rng))
                }
            };
            routing.map.push(index);
            routing.weights.push(weight);
        }
        routing
    }
}

fn weight(kind: Kind, rng: &mut Rng) -> f32 {
    match kind {
        Kind::Integers | Kind::Cancelling => 1.0,
        Kind::NegativeZeros => rng.pick([1.0, 0.25, -0.0]),
        Kind::Subnormals => rng.pick([1.0, 0.5, -2.0, 0.25]),
        Kind::Overflow => rng.pick([1.0, 2.0, -4.0]),
        _ => 0.05 + rng.unit(),
    }
}

/// 1 / (1 + exp(-x)), with exp as `(1 + x / 1024)^1024`: near enough for a score, and the same bits everywhere.
fn sigmoid(x: f32) -> f32 {
    let mut power = 1.0 - f64::from(x) / 1024.0;
    for _ in 0..10 {
        power *= power;
    }
    (1.0 / (1.0 + power)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_gives_the_row_counts_that_were_seen_in_production() {
        // sgl-project/sglang#28574 reports permuted buffers of 256 to 6272 rows for Kimi-K2.5.
        assert_eq!(padded_rows(2 * 8, 384, 16), 256);
        assert_eq!(padded_rows(64 * 8, 384, 16), 6272);
        assert_eq!(padded_rows(0, 384, 16), 0);
    }

    #[test]
    fn an_engine_sorts_its_rows_by_expert_and_pads_them_to_tiles() {
        for tokens in [0, 1, 32, 64, 1024] {
            let routing = Routing::engine(tokens, 8, 384, 0..384, Rng::new(7));
            let used: Vec<usize> =
                (0..routing.owners.len()).filter(|&r| routing.owners[r].is_some()).collect();
            assert_eq!(used.len(), tokens * 8);
            for (at, &row) in routing.map.iter().enumerate() {
                assert_eq!(routing.owners[row as usize], Some(at));
            }
            // Inside an expert rows are dense and in the order of tokens; an expert starts at a tile.
            let tile = tile(tokens * 8, 384);
            for pair in used.windows(2) {
                let (a, b) = (routing.owners[pair[0]], routing.owners[pair[1]]);
                assert!(pair[1] == pair[0] + 1 && a < b || pair[1] % tile == 0, "{pair:?}");
            }
        }
    }

    #[test]
    fn engine_weights_of_a_token_sum_to_the_routed_scaling() {
        let routing = Routing::engine(33, 8, 384, 0..384, Rng::new(1));
        for weights in routing.weights.chunks(8) {
            assert!((weights.iter().sum::<f32>() - ROUTED_SCALING).abs() < 1e-5);
            assert!(weights.is_sorted_by(|a, b| a >= b));
        }
    }

    #[test]
    fn expert_parallel_ranks_hold_every_row_once() {
        let owned = |rank: usize| 384 * rank / 8..384 * (rank + 1) / 8;
        let ranks: Vec<Routing> =
            (0..8).map(|rank| Routing::engine(64, 8, 384, owned(rank), Rng::new(5))).collect();
        for at in 0..64 * 8 {
            assert_eq!(ranks.iter().filter(|rank| rank.map[at] >= 0).count(), 1);
        }
    }

    #[test]
    fn sigmoid_is_near_the_one_of_the_library() {
        for x in [-3.5f32, -1.0, 0.0, 0.5, 3.5] {
            assert!((sigmoid(x) - 1.0 / (1.0 + (-x).exp())).abs() < 2e-3);
        }
    }
}
