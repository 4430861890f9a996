//! f32, exactly as the rounding contract has it.

use super::real::Real;
use crate::program::Reduction;
use crate::{DType, numerics};

/// Elements that one tree of the row sum covers.
const BLOCK: usize = 256;
/// Lanes of a block; each owns `BLOCK / LANES` neighbours.
const LANES: usize = 32;
/// Chains that the blocks' sums join in turn.
const CHAINS: usize = 4;

impl Real for f32 {
    type Stored = u8;

    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }

    fn max_magnitude(self, other: f32) -> f32 {
        let magnitude = |x: f32| x.to_bits() & 0x7FFF_FFFF;
        f32::from_bits(magnitude(self).max(magnitude(other)))
    }

    fn load(dtype: DType, bytes: &[u8], out: &mut [f32]) {
        numerics::load(dtype, bytes, out);
    }

    fn accumulate(acc: &mut [f32], row: &[f32], weight: f32) {
        #[cfg(target_arch = "x86_64")]
        if has_fma() {
            // SAFETY: the processor has the features.
            return unsafe { accumulate_fma(acc, row, weight) };
        }
        accumulate(acc, row, weight);
    }

    fn reduce(row: &[f32], reduction: Reduction) -> f32 {
        #[cfg(target_arch = "x86_64")]
        if has_fma() {
            // SAFETY: the processor has the features.
            return unsafe { reduce_fma(row, reduction) };
        }
        reduce(row, reduction)
    }

    fn round(dtype: DType, row: &mut [f32]) {
        numerics::round(dtype, row);
    }

    fn store(dtype: DType, row: &[f32], out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + row.len() * dtype.size(), 0);
        numerics::store(dtype, row, &mut out[start..]);
    }
}

/// Without the instruction, `mul_add` is a correctly rounded library call: the same bits, slowly.
#[cfg(target_arch = "x86_64")]
fn has_fma() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn accumulate_fma(acc: &mut [f32], row: &[f32], weight: f32) {
    accumulate(acc, row, weight);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn reduce_fma(row: &[f32], reduction: Reduction) -> f32 {
    reduce(row, reduction)
}

#[inline(always)]
fn accumulate(acc: &mut [f32], row: &[f32], weight: f32) {
    for (a, x) in acc.iter_mut().zip(row) {
        *a = x.mul_add(weight, *a);
    }
}

#[inline(always)]
fn reduce(row: &[f32], reduction: Reduction) -> f32 {
    match reduction {
        Reduction::Sum => tree(row, |acc, x| acc + x),
        Reduction::SumOfSquares => tree(row, |acc, x| x.mul_add(x, acc)),
        Reduction::MaxMagnitude => row.iter().fold(0.0, |largest: f32, x| largest.max_magnitude(*x)),
    }
}

/// The fixed tree: it depends on the row's length alone, so any split of the blocks over warps, CTAs and
/// clusters gives the same bits.
#[inline(always)]
fn tree(row: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let mut chains = [0.0; CHAINS];
    for (b, block) in row.chunks(BLOCK).enumerate() {
        let mut lanes = [0.0; LANES];
        for (lane, neighbours) in lanes.iter_mut().zip(block.chunks(BLOCK / LANES)) {
            *lane = neighbours.iter().fold(0.0, |acc, &x| term(acc, x));
        }
        // A butterfly leaves the same sum in every lane, as addition commutes: follow lane 0's.
        let mut width = LANES / 2;
        while width > 0 {
            for l in 0..width {
                lanes[l] += lanes[l + width];
            }
            width /= 2;
        }
        chains[b % CHAINS] += lanes[0];
    }
    (chains[0] + chains[1]) + (chains[2] + chains[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(len: usize) -> Vec<f32> {
        let mut state = len as u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state
        };
        (0..len).map(|_| f32::from_bits(next() & 0x83FF_FFFF | 0x3C00_0000)).collect()
    }

    /// The tree once more, as the contract words it: every lane kept, every exchange of the butterfly.
    fn literal(row: &[f32], squares: bool) -> f32 {
        let element = |i: usize| row.get(i).copied().unwrap_or(0.0);
        let mut chains = [0.0f32; 4];
        for b in 0..row.len().div_ceil(256) {
            let mut lanes = [0.0f32; 32];
            for (l, lane) in lanes.iter_mut().enumerate() {
                for i in 0..8 {
                    let x = element(b * 256 + l * 8 + i);
                    *lane = if squares { x.mul_add(x, *lane) } else { *lane + x };
                }
            }
            for mask in [16, 8, 4, 2, 1] {
                lanes = std::array::from_fn(|l| lanes[l] + lanes[l ^ mask]);
            }
            assert!(lanes.iter().all(|v| v.to_bits() == lanes[0].to_bits()));
            chains[b % 4] += lanes[0];
        }
        (chains[0] + chains[1]) + (chains[2] + chains[3])
    }

    #[test]
    fn row_sum_is_the_tree_of_the_contract() {
        for len in [0, 1, 7, 8, 9, 255, 256, 257, 511, 1023, 1025, 2880, 7168] {
            let row = row(len);
            for (reduction, squares) in [(Reduction::Sum, false), (Reduction::SumOfSquares, true)] {
                let expected = literal(&row, squares).to_bits();
                assert_eq!(f32::reduce(&row, reduction).to_bits(), expected, "H={len} {squares}");
            }
        }
    }

    #[test]
    fn the_tree_tells_itself_from_a_plain_sum() {
        let row = row(7168);
        let plain = row.iter().fold(0.0f32, |acc, x| acc + x);
        assert_ne!(f32::reduce(&row, Reduction::Sum).to_bits(), plain.to_bits());
    }

    #[test]
    fn a_sum_of_negative_zeros_is_positive() {
        assert_eq!(f32::reduce(&[-0.0; 300], Reduction::Sum).to_bits(), 0);
    }

    #[test]
    fn the_fallback_gives_the_bits_of_the_instruction() {
        let x = row(7168);
        let (mut fast, mut slow) = (x.clone(), x.clone());
        for weight in [0.3, -1.7, f32::MIN_POSITIVE, 1e-42] {
            f32::accumulate(&mut fast, &x, weight);
            accumulate(&mut slow, &x, weight);
        }
        assert!(fast.iter().zip(&slow).all(|(a, b)| a.to_bits() == b.to_bits()));
        let squares = Reduction::SumOfSquares;
        assert_eq!(f32::reduce(&x, squares).to_bits(), reduce(&x, squares).to_bits());
    }
}
