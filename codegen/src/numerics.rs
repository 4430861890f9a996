//! Stored bits and f32: the conversions of the rounding contract.
//!
//! To nearest even, overflow to infinity, subnormals kept, every NaN stored as one pattern. The
//! conversions are selects over integers rather than branches, so that a row of them vectorises.

use crate::DType;

/// The bits of every NaN that is stored as bf16 or f16.
pub const NAN_16: u16 = 0x7FFF;
/// The bits of every NaN that is stored as f32.
pub const NAN_32: u32 = 0x7FFF_FFFF;

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7F80_0000;
/// What an exponent field gains from binary16 to binary32: the difference of the biases.
const REBIAS: u32 = (127 - 15) << 23;

/// To bf16.
#[inline(always)]
pub fn to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let nan = bits & !SIGN > INFINITY;
    // Half an ulp less one, plus the last kept bit: a tie goes to even, and a carry out of the largest
    // finite value lands on infinity. The only bits it could wrap are NaNs', which are not used.
    let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16;
    if nan { NAN_16 } else { rounded as u16 }
}

/// From bf16.
#[inline(always)]
pub fn from_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// To f16.
#[inline(always)]
pub fn to_f16(x: f32) -> u16 {
    /// 2^16; from 65520 on, values round to it, which is infinity.
    const OVERFLOW: u32 = (127 + 16) << 23;
    /// 2^-14, the smallest normal f16.
    const NORMAL: u32 = (127 - 14) << 23;

    let sign = (x.to_bits() & SIGN) >> 16;
    let magnitude = x.to_bits() & !SIGN;
    let normal = (magnitude.wrapping_add(0xFFF + (magnitude >> 13 & 1)).wrapping_sub(REBIAS)) >> 13;
    // In [0.5, 1) one ulp of f32 is 2^-24, the step of f16's subnormals: the addition rounds to it.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5f32.to_bits();
    let finite = if magnitude < NORMAL { subnormal } else { normal };
    let stored = if magnitude >= OVERFLOW { 0x7C00 } else { finite };
    if magnitude > INFINITY { NAN_16 } else { (sign | stored) as u16 }
}

/// From f16.
#[inline(always)]
pub fn from_f16(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let shifted = u32::from(bits & 0x7FFF) << 13;
    let exponent = bits & 0x7C00;
    // A subnormal is its fraction times 2^-24: put behind a one at 2^-14, and the one taken off again.
    let one = (127 - 14) << 23;
    let subnormal = (f32::from_bits(shifted | one) - f32::from_bits(one)).to_bits();
    let normal = shifted + REBIAS;
    let magnitude = match exponent {
        0 => subnormal,
        0x7C00 => shifted | INFINITY,
        _ => normal,
    };
    f32::from_bits(sign | magnitude)
}

/// To stored f32: the bits, but for a NaN.
#[inline(always)]
pub fn to_f32(x: f32) -> u32 {
    if x.is_nan() { NAN_32 } else { x.to_bits() }
}

/// The bits of every NaN that is stored as e4m3.
pub const NAN_8: u8 = 0x7F;

/// To e4m3, as the Open Compute Project's 8-bit floating point specification has it in its saturating mode: to nearest
/// even, and what is beyond ±448, infinities too, becomes that.
#[inline(always)]
pub fn to_e4m3(x: f32) -> u8 {
    /// 2^-6, the smallest normal e4m3.
    const NORMAL: u32 = (127 - 6) << 23;
    /// What an exponent field gains from e4m3 to binary32.
    const REBIAS: u32 = (127 - 7) << 23;
    const LARGEST: u32 = 0x7E;

    let sign = (x.to_bits() & SIGN) >> 24;
    let magnitude = x.to_bits() & !SIGN;
    let normal = magnitude.wrapping_add(0x7_FFFF + (magnitude >> 20 & 1)).wrapping_sub(REBIAS) >> 20;
    // From 2^14 on one ulp of f32 is 2^-9, the step of e4m3's subnormals: the addition rounds to it.
    let subnormal = (f32::from_bits(magnitude) + 16384.0).to_bits() - 16384f32.to_bits();
    let stored = if magnitude < NORMAL { subnormal } else { normal };
    // Far beyond the largest the subtraction has wrapped.
    let stored = if magnitude >= 448f32.to_bits() { LARGEST } else { stored };
    if magnitude > INFINITY { NAN_8 } else { (sign | stored) as u8 }
}

/// From e4m3.
#[inline(always)]
pub fn from_e4m3(bits: u8) -> f32 {
    let sign = u32::from(bits & 0x80) << 24;
    let magnitude = u32::from(bits & 0x7F);
    let value = match magnitude {
        0x7F => f32::NAN,
        // A subnormal is its fraction times 2^-9.
        0..8 => magnitude as f32 * f32::from_bits((127 - 9) << 23),
        _ => f32::from_bits((magnitude << 20) + ((127 - 7) << 23)),
    };
    f32::from_bits(sign | value.to_bits())
}

/// Reads `out.len()` elements of `dtype`. An `i32` converts as `as` does; no arithmetic reads one.
///
/// Reads as many as both sides hold.
pub fn load(dtype: DType, bytes: &[u8], out: &mut [f32]) {
    match dtype {
        DType::Bf16 => read(bytes, out, |b| from_bf16(u16::from_ne_bytes(b))),
        DType::F16 => read(bytes, out, |b| from_f16(u16::from_ne_bytes(b))),
        DType::F32 => read(bytes, out, f32::from_ne_bytes),
        DType::I32 => read(bytes, out, |b| i32::from_ne_bytes(b) as f32),
        DType::E4m3 => read(bytes, out, |[b]| from_e4m3(b)),
    }
}

/// Writes `row` as elements of `dtype`. To `i32` as `as` converts; no output has that dtype.
///
/// Writes as many as both sides hold.
pub fn store(dtype: DType, row: &[f32], bytes: &mut [u8]) {
    match dtype {
        DType::Bf16 => write(row, bytes, |x| to_bf16(x).to_ne_bytes()),
        DType::F16 => write(row, bytes, |x| to_f16(x).to_ne_bytes()),
        DType::F32 => write(row, bytes, |x| to_f32(x).to_ne_bytes()),
        DType::I32 => write(row, bytes, |x| (x as i32).to_ne_bytes()),
        DType::E4m3 => write(row, bytes, |x| [to_e4m3(x)]),
    }
}

/// Replaces every element by what storing it as `dtype` leaves of it.
pub fn round(dtype: DType, row: &mut [f32]) {
    match dtype {
        DType::Bf16 => row.iter_mut().for_each(|x| *x = from_bf16(to_bf16(*x))),
        DType::F16 => row.iter_mut().for_each(|x| *x = from_f16(to_f16(*x))),
        DType::F32 => row.iter_mut().for_each(|x| *x = f32::from_bits(to_f32(*x))),
        DType::I32 => row.iter_mut().for_each(|x| *x = *x as i32 as f32),
        DType::E4m3 => row.iter_mut().for_each(|x| *x = from_e4m3(to_e4m3(*x))),
    }
}

#[inline(always)]
fn read<const SIZE: usize>(bytes: &[u8], out: &mut [f32], convert: impl Fn([u8; SIZE]) -> f32) {
    for (element, x) in bytes.as_chunks().0.iter().zip(out) {
        *x = convert(*element);
    }
}

#[inline(always)]
fn write<const SIZE: usize>(row: &[f32], bytes: &mut [u8], convert: impl Fn(f32) -> [u8; SIZE]) {
    for (element, x) in bytes.as_chunks_mut().0.iter_mut().zip(row) {
        *element = convert(*x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every f32 at, next to and halfway between the values of `from`, and a stride over all of them.
    fn samples(from: fn(u16) -> f32) -> impl Iterator<Item = f32> {
        let around = (0..=u16::MAX).flat_map(move |h| {
            let (low, high) = (from(h), from(h.wrapping_add(1)));
            let middle = f32::from_bits(low.to_bits() / 2 + high.to_bits() / 2);
            [low, middle]
                .into_iter()
                .flat_map(|x| (-2i32..=2).map(move |d| f32::from_bits(x.to_bits().wrapping_add_signed(d))))
        });
        around.chain((0..=u32::MAX).step_by(509).map(f32::from_bits))
    }

    #[test]
    fn to_bf16_agrees_with_half() {
        for x in samples(from_bf16) {
            let expected = if x.is_nan() { NAN_16 } else { half::bf16::from_f32(x).to_bits() };
            assert_eq!(to_bf16(x), expected, "{:#x}", x.to_bits());
        }
    }

    #[test]
    fn to_f16_agrees_with_half() {
        for x in samples(from_f16) {
            let expected = if x.is_nan() { NAN_16 } else { half::f16::from_f32(x).to_bits() };
            assert_eq!(to_f16(x), expected, "{:#x}", x.to_bits());
        }
    }

    #[test]
    fn every_sixteen_bit_value_reads_as_half_reads_it() {
        for bits in 0..=u16::MAX {
            let (b, h) = (half::bf16::from_bits(bits), half::f16::from_bits(bits));
            assert!(
                from_bf16(bits).to_bits() == b.to_f32().to_bits() || b.is_nan() && from_bf16(bits).is_nan()
            );
            assert!(
                from_f16(bits).to_bits() == h.to_f32().to_bits() || h.is_nan() && from_f16(bits).is_nan()
            );
        }
    }

    #[test]
    fn every_sixteen_bit_value_survives_and_every_nan_becomes_one() {
        for bits in 0..=u16::MAX {
            let (b, h) = (from_bf16(bits), from_f16(bits));
            assert_eq!(to_bf16(b), if b.is_nan() { NAN_16 } else { bits });
            assert_eq!(to_f16(h), if h.is_nan() { NAN_16 } else { bits });
        }
    }

    /// Made by `tests/data/e4m3.py` with the package ml_dtypes: values at, next to and halfway between all e4m3s.
    const E4M3: &str = include_str!("../tests/data/e4m3.txt");

    #[test]
    fn to_e4m3_agrees_with_ml_dtypes() {
        let mut cases = 0;
        for line in E4M3.lines() {
            let (x, expected) = line.split_once(' ').unwrap();
            let x = f32::from_bits(u32::from_str_radix(x, 16).unwrap());
            let expected = u8::from_str_radix(expected, 16).unwrap();
            assert_eq!(to_e4m3(x), expected, "{x:?}");
            cases += 1;
        }
        assert!(cases > 1500);
    }

    #[test]
    fn every_e4m3_survives_and_every_nan_becomes_one() {
        for bits in 0..=u8::MAX {
            let x = from_e4m3(bits);
            assert_eq!(to_e4m3(x), if x.is_nan() { NAN_8 } else { bits });
        }
        assert_eq!(
            [0x01, 0x08, 0x7E, 0xFE, 0x38].map(from_e4m3),
            [0.001953125, 0.015625, 448.0, -448.0, 1.0]
        );
    }

    #[test]
    fn overflow_starts_halfway_to_the_next_power_of_two() {
        assert_eq!(to_f16(65519.996), 0x7BFF);
        assert_eq!(to_f16(65520.0), 0x7C00);
        assert_eq!(to_f16(-f32::MAX), 0xFC00);
        assert_eq!(to_bf16(f32::from_bits(0x7F7F_7FFF)), 0x7F7F);
        assert_eq!(to_bf16(f32::from_bits(0x7F7F_8000)), 0x7F80);
        assert_eq!(to_bf16(f32::MIN), 0xFF80);
    }

    #[test]
    fn no_stored_value_is_all_ones() {
        // The exchange takes a word of ones for "not written yet".
        for bits in [0x7F80_0001, 0x7FC0_0000, 0xFFFF_FFFF, 0xFFC0_0000, 0xFF80_0001] {
            let nan = f32::from_bits(bits);
            assert_eq!((to_bf16(nan), to_f16(nan), to_f32(nan)), (0x7FFF, 0x7FFF, 0x7FFF_FFFF));
        }
    }

    #[test]
    fn rows_convert_as_their_elements_do() {
        let row: Vec<f32> = (0..1037u32).map(|i| f32::from_bits(i.wrapping_mul(0x9E37_79B9))).collect();
        for dtype in DType::FLOATS {
            let mut bytes = vec![0; row.len() * dtype.size()];
            store(dtype, &row, &mut bytes);
            let mut back = vec![0.0; row.len()];
            load(dtype, &bytes, &mut back);
            let mut rounded = row.clone();
            round(dtype, &mut rounded);
            for (i, &x) in row.iter().enumerate() {
                let expected = match dtype {
                    DType::Bf16 => from_bf16(to_bf16(x)),
                    DType::F16 => from_f16(to_f16(x)),
                    _ => f32::from_bits(to_f32(x)),
                };
                assert_eq!(back[i].to_bits(), expected.to_bits(), "{dtype} {i}");
                assert_eq!(rounded[i].to_bits(), expected.to_bits(), "{dtype} {i}");
            }
        }
    }
}
