//! What the elements are.

use super::kind::Kind;
use super::rng::Rng;
use crate::{DType, numerics};

/// One channel in so many is an outlier in an engine's activations, and so many times larger.
///
/// Large language models keep a few channels of their residual stream that large: Dettmers et al.,
/// "LLM.int8()", 2022; Sun et al., "Massive activations in large language models", 2024.
const OUTLIER_ONE_IN: usize = 512;
const OUTLIER: f32 = 32.0;
/// What cancels in [`Kind::Cancelling`].
const LARGE: f32 = 64.0;

/// Which row of which tensor.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// The permuted row of an expert for a token.
    Row {
        token: usize,
        k: usize,
    },
    Token(usize),
    Channels,
    PerToken,
}

/// How the rows of a tensor are made.
pub(super) struct Values {
    pub(super) kind: Kind,
    pub(super) seed: u64,
    pub(super) rank: usize,
    pub(super) dtype: DType,
    /// The channels that are larger than the others in every activation.
    pub(super) outliers: Vec<usize>,
}

/// The outlier channels of an engine's activations: the same in every tensor and on every rank.
pub(super) fn outliers(seed: u64, hidden: usize) -> Vec<usize> {
    let mut rng = Rng::new(seed).fork(u64::MAX - 1);
    (0..hidden).filter(|_| rng.one_in(OUTLIER_ONE_IN)).collect()
}

impl Values {
    /// Makes the row at `place` in `row` and stores it in `bytes`.
    pub(super) fn write(&self, place: Place, rng: &mut Rng, row: &mut [f32], bytes: &mut [u8]) {
        match place {
            Place::Row { .. } | Place::Token(_) => self.activations(place, rng, row),
            Place::Channels => self.channels(rng, row),
            Place::PerToken => row.fill_with(|| 0.5 + rng.unit()),
        }
        numerics::store(self.dtype, row, bytes);
        if self.kind == Kind::InfAndNan {
            self.specials(place, rng, bytes);
        }
    }

    fn activations(&self, place: Place, rng: &mut Rng, row: &mut [f32]) {
        match self.kind {
            Kind::Engine { .. } => {
                row.fill_with(|| rng.normal());
                self.outliers.iter().for_each(|&channel| row[channel] *= OUTLIER);
            }
            Kind::NegativeZeros => {
                let tiny = self.smallest();
                row.fill_with(|| rng.pick([-0.0, -0.0, -tiny, 0.0]));
                // A row without a positive term, so that the sum of a token can be -0.0 too.
                if rng.one_in(2) {
                    row.fill_with(|| rng.pick([-0.0, -tiny]));
                }
            }
            Kind::Subnormals => row.fill_with(|| self.subnormal(rng)),
            Kind::Cancelling => self.cancelling(place, rng, row),
            Kind::Integers => row.fill_with(|| rng.below(3) as f32 - 1.0),
            Kind::Overflow => {
                let largest = self.largest();
                row.fill_with(|| largest * (0.5 + 0.5 * rng.unit()) * rng.pick([1.0, -1.0]));
            }
            _ => row.fill_with(|| rng.normal()),
        }
    }

    fn channels(&self, rng: &mut Rng, row: &mut [f32]) {
        match self.kind {
            Kind::NegativeZeros => row.fill_with(|| rng.pick([1.0, -1.0, -0.0])),
            Kind::Subnormals => row.fill_with(|| rng.pick([1.0, self.smallest()])),
            Kind::Integers => row.fill_with(|| rng.pick([1.0, 2.0])),
            _ => row.fill_with(|| 1.0 + 0.1 * rng.normal()),
        }
    }

    /// Terms of one size and changing sign per expert and rank, beside small ones.
    fn cancelling(&self, place: Place, rng: &mut Rng, row: &mut [f32]) {
        let (token, turn) = match place {
            Place::Row { token, k } => (token, k + self.rank),
            Place::Token(token) => (token, self.rank),
            _ => (0, 0),
        };
        let mut large = Rng::new(self.seed).fork(token as u64);
        let sign = if turn % 2 == 0 { 1.0 } else { -1.0 };
        row.fill_with(|| sign * LARGE * (1.0 + large.unit()) + rng.normal());
    }

    /// Puts infinities and NaNs among the elements, as bits: a conversion would lose the payloads.
    fn specials(&self, place: Place, rng: &mut Rng, bytes: &mut [u8]) {
        let odds = match place {
            Place::Row { .. } | Place::Token(_) => rng.pick([1, 16, 256, usize::MAX]),
            Place::Channels | Place::PerToken => 256,
        };
        let specials: [u32; 6] = match self.dtype {
            DType::Bf16 => [0x7F80, 0xFF80, 0x7FC1, 0xFFC0, 0x7F81, 0xFFFF],
            DType::F16 => [0x7C00, 0xFC00, 0x7E01, 0xFE00, 0x7C01, 0xFFFF],
            _ => [0x7F80_0000, 0xFF80_0000, 0x7FC0_0001, 0xFFC0_0000, 0x7F80_0001, 0xFFFF_FFFF],
        };
        for element in bytes.chunks_exact_mut(self.dtype.size()) {
            if rng.one_in(odds) {
                let bits = rng.pick(specials);
                match element.len() {
                    2 => element.copy_from_slice(&(bits as u16).to_ne_bytes()),
                    _ => element.copy_from_slice(&bits.to_ne_bytes()),
                }
            }
        }
    }

    /// The smallest positive value of the dtype.
    fn smallest(&self) -> f32 {
        match self.dtype {
            DType::Bf16 => numerics::from_bf16(1),
            DType::F16 => numerics::from_f16(1),
            _ => f32::from_bits(1),
        }
    }

    /// The largest finite value of the dtype.
    fn largest(&self) -> f32 {
        match self.dtype {
            DType::Bf16 => numerics::from_bf16(0x7F7F),
            DType::F16 => numerics::from_f16(0x7BFF),
            _ => f32::MAX,
        }
    }

    fn subnormal(&self, rng: &mut Rng) -> f32 {
        let bits = rng.next() as u32;
        match self.dtype {
            DType::Bf16 => numerics::from_bf16(bits as u16 & 0x807F),
            DType::F16 => numerics::from_f16(bits as u16 & 0x83FF),
            _ => f32::from_bits(bits & 0x807F_FFFF),
        }
    }
}
