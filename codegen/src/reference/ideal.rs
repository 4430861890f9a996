//! The same program in f64: what the stored inputs would give without any rounding on the way.

use super::inputs::{self, RankInputs, ReferenceError};
use super::real::Real;
use super::{Buffer, execute};
use crate::program::Reduction;
use crate::{DType, Program, numerics};

/// Runs `program` in f64. Per rank and output, `[T, H]`; `Round` instructions do nothing.
///
/// # Errors
/// As [`run`](super::run).
pub fn run(
    program: &Program,
    inputs: &[RankInputs<'_>],
    tokens: usize,
) -> Result<Vec<Vec<Vec<f64>>>, ReferenceError> {
    let ranks = inputs::bind(&vec![program; inputs.len()], inputs, tokens)?;
    let results = execute::execute::<f64>(&ranks, tokens);
    Ok(results.into_iter().map(|rank| rank.outputs).collect())
}

/// The relative L2 error of a stored output: `‖stored - ideal‖ / ‖ideal‖`, and 0 where both are zero.
pub fn relative_l2(stored: &Buffer, ideal: &[f64]) -> f64 {
    let (mut error, mut norm) = (0.0, 0.0);
    for (&x, &y) in stored.to_f32().iter().zip(ideal) {
        let difference = f64::from(x) - y;
        error += difference * difference;
        norm += y * y;
    }
    if error == 0.0 { 0.0 } else { (error / norm).sqrt() }
}

impl Real for f64 {
    type Stored = f64;

    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }

    fn max_magnitude(self, other: f64) -> f64 {
        match self.is_nan() || other.is_nan() {
            true => f64::NAN,
            false => self.abs().max(other.abs()),
        }
    }

    fn load(dtype: DType, bytes: &[u8], out: &mut [f64]) {
        const CHUNK: usize = 256;
        let mut chunk = [0.0; CHUNK];
        for (bytes, out) in bytes.chunks(CHUNK * dtype.size()).zip(out.chunks_mut(CHUNK)) {
            numerics::load(dtype, bytes, &mut chunk);
            for (x, narrow) in out.iter_mut().zip(chunk) {
                *x = narrow.into();
            }
        }
    }

    fn accumulate(acc: &mut [f64], row: &[f64], weight: f64) {
        for (a, x) in acc.iter_mut().zip(row) {
            *a += x * weight;
        }
    }

    fn reduce(row: &[f64], reduction: Reduction) -> f64 {
        match reduction {
            Reduction::Sum => row.iter().sum(),
            Reduction::SumOfSquares => row.iter().map(|x| x * x).sum(),
            Reduction::MaxMagnitude => row.iter().fold(0.0, |largest, x| largest.max_magnitude(*x)),
        }
    }

    fn round(_: DType, _: &mut [f64]) {}

    fn store(_: DType, row: &[f64], out: &mut Vec<f64>) {
        out.extend_from_slice(row);
    }
}
