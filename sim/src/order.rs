//! In which order a run lets threads, blocks and ranks go on.

use crate::bits::Bits;
use std::fmt;
use std::str::FromStr;

/// Who runs next, where CUDA promises nothing. The same order replays the same run exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// The first thread of the first block of the first rank that can run.
    #[default]
    Forward,
    /// The last one.
    Reverse,
    /// Any, from this seed. A seed also decides what else a GPU may do: ranks start late, a launch begins before its
    /// predecessor has ended (where that one lets it), accesses to exchange memory interleave, words arrive one by one.
    Random(u64),
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Forward => f.write_str("forward"),
            Order::Reverse => f.write_str("reverse"),
            Order::Random(seed) => write!(f, "random:{seed}"),
        }
    }
}

/// Not an [`Order`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the order is `{0}`, and must be `forward`, `reverse` or `random:` and a seed, such as `random:7`")]
pub struct ParseOrderError(String);

impl FromStr for Order {
    type Err = ParseOrderError;

    fn from_str(s: &str) -> Result<Order, ParseOrderError> {
        let seed = || s.strip_prefix("random:").and_then(|seed| seed.parse().ok());
        match s {
            "forward" => Ok(Order::Forward),
            "reverse" => Ok(Order::Reverse),
            _ => seed().map(Order::Random).ok_or_else(|| ParseOrderError(s.to_owned())),
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
#[derive(Clone, Debug)]
pub(crate) struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not zero.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Picks by an [`Order`].
#[derive(Debug)]
pub(crate) struct Chooser {
    pub order: Order,
    rng: Rng,
}

impl Chooser {
    pub fn new(order: Order) -> Chooser {
        let seed = if let Order::Random(seed) = order { seed } else { 0 };
        Chooser { order, rng: Rng(seed) }
    }

    /// The member after (or before) `cursor`, going round; any one, in a random order.
    pub fn pick(&mut self, bits: &Bits, cursor: usize) -> Option<usize> {
        match self.order {
            Order::Forward => bits.next(cursor).or_else(|| bits.next(0)),
            Order::Reverse => bits.previous(cursor).or_else(|| bits.previous(usize::MAX)),
            Order::Random(_) if bits.is_empty() => None,
            Order::Random(_) => {
                let from = self.rng.below(bits.capacity());
                bits.next(from).or_else(|| bits.next(0))
            }
        }
    }

    /// Where to look after `picked` has run, so that everyone has a turn.
    pub fn after(&self, picked: usize) -> usize {
        match self.order {
            Order::Reverse => picked.checked_sub(1).unwrap_or(usize::MAX),
            _ => picked + 1,
        }
    }

    /// `0..n`, in the order in which they begin. The last one begins first.
    pub fn stack(&mut self, n: usize) -> Vec<u32> {
        let n = n as u32;
        match self.order {
            Order::Forward => (0..n).rev().collect(),
            Order::Reverse => (0..n).collect(),
            Order::Random(_) => {
                let mut all = (0..n).collect::<Vec<_>>();
                for i in (1..all.len()).rev() {
                    all.swap(i, self.rng.below(i + 1));
                }
                all
            }
        }
    }

    /// The first of `n`, the last, or any.
    pub fn one_of(&mut self, n: usize) -> usize {
        match self.order {
            Order::Forward => 0,
            Order::Reverse => n - 1,
            Order::Random(_) => self.rng.below(n),
        }
    }

    /// True once in `n` times, in a random order; never in the others.
    pub fn perhaps(&mut self, n: usize) -> bool {
        matches!(self.order, Order::Random(_)) && self.rng.one_in(n)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.rng.below(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_is_printed() {
        for order in [Order::Forward, Order::Reverse, Order::Random(u64::MAX)] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        assert!("random:".parse::<Order>().unwrap_err().to_string().contains("random:7"));
    }

    #[test]
    fn every_block_begins_once_in_every_order() {
        for order in [Order::Forward, Order::Reverse, Order::Random(3)] {
            let mut all = Chooser::new(order).stack(100);
            assert_eq!(
                all.last(),
                Some(&match order {
                    Order::Forward => 0,
                    Order::Reverse => 99,
                    Order::Random(_) => *all.last().unwrap(),
                })
            );
            all.sort_unstable();
            assert_eq!(all, (0..100).collect::<Vec<_>>());
        }
    }
}
