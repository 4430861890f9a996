//! How close results are: in bits to the reference, in error to f64.

use seamline_codegen::reference::{self, Buffer, RankOutputs, ReferenceError, ideal};
use seamline_codegen::workload::Workload;
use seamline_codegen::{DType, Program};
use std::fmt;

/// What a workload should give.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The reference's results, per rank.
    pub exact: Vec<RankOutputs>,
    /// What the same instructions give in f64, per rank and output.
    pub ideal: Vec<Vec<Vec<f64>>>,
}

/// How what ran compares with it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// How many ranks stored the reference's bits in every output.
    pub equal_ranks: usize,
    /// How many ran.
    pub ranks: usize,
    /// The first element that differs.
    pub difference: Option<Difference>,
    /// Per output: relative L2 error against f64, the worst rank's. NaN where results are not finite.
    pub errors: Vec<f64>,
}

/// An element that is not the reference's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Who stored it.
    pub rank: usize,
    /// Where to.
    pub output: String,
    /// Its row.
    pub token: usize,
    /// Its column.
    pub channel: usize,
    /// The reference's.
    pub expected: Element,
    /// What was stored.
    pub got: Element,
}

/// One element of an output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// What it is.
    pub dtype: DType,
    /// As stored, in the low bits.
    pub bits: u32,
}

impl Comparison {
    /// Whether every rank has the reference's bits.
    pub fn is_equal(&self) -> bool {
        self.equal_ranks == self.ranks
    }
}

impl Expected {
    /// Runs the reference, in f32 and in f64.
    ///
    /// # Errors
    /// A workload of another program.
    pub fn new(program: &Program, workload: &Workload) -> Result<Expected, ReferenceError> {
        let inputs = workload.inputs();
        Ok(Expected {
            exact: reference::run(program, &inputs, workload.tokens())?,
            ideal: ideal::run(program, &inputs, workload.tokens())?,
        })
    }

    /// Compares what each rank stored with it.
    pub fn compare(&self, program: &Program, outputs: &[Vec<Buffer>]) -> Comparison {
        let mut comparison = Comparison {
            equal_ranks: 0,
            ranks: outputs.len(),
            difference: None,
            errors: vec![0.0; program.outputs.len()],
        };
        // Ranks that exchange nothing all do what the first one does.
        let expected = self.exact.iter().zip(&self.ideal).cycle();
        for (rank, (got, (exact, ideal))) in outputs.iter().zip(expected).enumerate() {
            let differs = |output: usize| {
                let at = first_difference(&exact.outputs[output], &got[output])?;
                let width = program.outputs[output].tensor.width as usize;
                Some(Difference {
                    rank,
                    output: program.outputs[output].name.clone(),
                    token: at / width,
                    channel: at % width,
                    expected: Element::of(&exact.outputs[output], at),
                    got: Element::of(&got[output], at),
                })
            };
            match (0..got.len()).find_map(differs) {
                None => comparison.equal_ranks += 1,
                found => comparison.difference = comparison.difference.or(found),
            }
            for ((worst, got), ideal) in comparison.errors.iter_mut().zip(got).zip(ideal) {
                let error = ideal::relative_l2(got, ideal);
                // Not `max`, which drops a NaN.
                *worst = if error.is_nan() || error > *worst { error } else { *worst };
            }
        }
        comparison
    }
}

fn first_difference(exact: &Buffer, got: &Buffer) -> Option<usize> {
    if exact == got {
        return None;
    }
    let size = exact.dtype().size();
    exact.bytes().chunks(size).zip(got.bytes().chunks(size)).position(|(exact, got)| exact != got)
}

impl Element {
    fn of(buffer: &Buffer, at: usize) -> Element {
        let size = buffer.dtype().size();
        let mut bits = [0; 4];
        bits[..size].copy_from_slice(&buffer.bytes()[at * size..][..size]);
        Element { dtype: buffer.dtype(), bits: u32::from_le_bytes(bits) }
    }

    /// Its value.
    pub fn value(self) -> f32 {
        let bytes = &self.bits.to_le_bytes()[..self.dtype.size()];
        Buffer::from_bytes(self.dtype, bytes).to_f32().first().copied().unwrap_or(f32::NAN)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} (0x{:0digits$x})", self.value(), self.bits, digits = 2 * self.dtype.size())
    }
}

impl fmt::Debug for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { rank, output, token, channel, expected, got } = self;
        write!(f, "rank {rank}, `{output}`, token {token}, channel {channel}: expected {expected}, got {got}")
    }
}
