//! The reference executor: what a program computes, bit for bit.
//!
//! [`run`] interprets the instructions of a [`Program`] for all ranks at once, exactly as the
//! documentation of [`Inst`](crate::program::Inst) states them. Generated CUDA is right when it stores
//! the same bits. [`ideal`] walks the same instructions in f64, without any rounding between input and
//! output: it tells how far from the mathematics those bits are.

mod buffer;
mod environment;
mod exact;
mod execute;
mod frame;
pub mod ideal;
mod inputs;
mod real;

pub use buffer::Buffer;
pub use inputs::{Input, RankInputs, ReferenceError};

use crate::Program;

/// What one rank stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankOutputs {
    /// Per output of the program, in order: `[T, H]` of its dtype. For an output that is in place, what
    /// its parameter's memory holds afterwards.
    pub outputs: Vec<Buffer>,
    /// How many row indices lay outside `[-1, P)`. They count as -1 and fail nothing: the padding rows of
    /// captured graphs carry garbage.
    pub stray_rows: u64,
}

/// Runs `program` on every rank of a group: `inputs` in rank order, `tokens` rows of each.
///
/// Buffers may be longer than `tokens` needs. The bits of a row do not depend on the others.
///
/// # Errors
/// When `inputs` does not fit the program; see [`ReferenceError`].
pub fn run(
    program: &Program,
    inputs: &[RankInputs<'_>],
    tokens: usize,
) -> Result<Vec<RankOutputs>, ReferenceError> {
    run_each(&vec![program; inputs.len()], inputs, tokens)
}

/// As [`run`], for ranks whose variants differ: inputs that are used before the exchange may be present
/// on some ranks only, a shared expert on rank 0 say. `programs` are bindings of one graph.
///
/// # Errors
/// When `inputs` or `programs` do not fit together; see [`ReferenceError`].
pub fn run_each(
    programs: &[&Program],
    inputs: &[RankInputs<'_>],
    tokens: usize,
) -> Result<Vec<RankOutputs>, ReferenceError> {
    let ranks = inputs::bind(programs, inputs, tokens)?;
    let results = execute::execute::<f32>(&ranks, tokens);
    Ok(results
        .into_iter()
        .zip(programs)
        .map(|(rank, program)| RankOutputs {
            outputs: rank
                .outputs
                .into_iter()
                .zip(&program.outputs)
                .map(|(bytes, output)| Buffer::from_bytes(output.tensor.dtype, &bytes))
                .collect(),
            stray_rows: rank.stray_rows,
        })
        .collect())
}
