//! What the interpreter needs of a number, so that one walk serves f32 and f64.

use crate::DType;
use crate::program::Reduction;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number type that programs are interpreted in.
pub(super) trait Real:
    Copy
    + Default
    + Send
    + Sync
    + From<f32>
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// An element of a result.
    type Stored: Copy + Default + Send;

    /// The square root, correctly rounded.
    fn sqrt(self) -> Self;

    /// The larger of the magnitudes; of a NaN and anything, the NaN.
    fn max_magnitude(self, other: Self) -> Self;

    /// Reads elements of `dtype`.
    fn load(dtype: DType, bytes: &[u8], out: &mut [Self]);

    /// `acc = row * weight + acc`, per element.
    fn accumulate(acc: &mut [Self], row: &[Self], weight: Self);

    /// What `reduction` makes of `row`.
    fn reduce(row: &[Self], reduction: Reduction) -> Self;

    /// Leaves what storing as `dtype` leaves.
    fn round(dtype: DType, row: &mut [Self]);

    /// Appends `row`, which is already rounded to `dtype`.
    fn store(dtype: DType, row: &[Self], out: &mut Vec<Self::Stored>);
}
