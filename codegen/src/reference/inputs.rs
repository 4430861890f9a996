//! What a run is given, and the check that it fits the program.

use super::Buffer;
use crate::program::{Class, Program};
use crate::tensor::Access;
use crate::{DType, Tensor};

/// The argument for one parameter.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// For an optional parameter that the variant does not have.
    Absent,
    /// For a `Scalar`.
    Scalar(f32),
    /// The memory of a tensor: elements of the parameter's dtype, in the machine's byte order, at any
    /// address.
    Bytes(&'a [u8]),
}

impl<'a> From<&'a Buffer> for Input<'a> {
    fn from(buffer: &'a Buffer) -> Self {
        Input::Bytes(buffer.bytes())
    }
}

/// The arguments of one rank: one per parameter of the program, absent ones too, in order.
#[derive(Clone, Debug)]
pub struct RankInputs<'a>(pub Vec<Input<'a>>);

/// Why a program cannot run on the inputs it was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// As many ranks as the program was bound to.
    #[error(
        "`{pattern}` is bound to {expected} ranks, and got inputs for {got}: bind it to as many ranks as run it"
    )]
    Ranks {
        /// The pattern.
        pattern: String,
        /// What the program is bound to.
        expected: usize,
        /// How many ranks have inputs.
        got: usize,
    },
    /// The ranks' programs do not come from one graph and one set of dims.
    #[error(
        "rank {rank} runs a different `{pattern}` than rank 0: only inputs used before the exchange may differ in presence"
    )]
    Programs {
        /// The pattern.
        pattern: String,
        /// The first rank that differs.
        rank: usize,
    },
    /// One input per parameter.
    #[error(
        "rank {rank} of `{pattern}` got {got} inputs for {expected} parameters: give one per parameter, `Absent` for those the variant lacks"
    )]
    Params {
        /// The pattern.
        pattern: String,
        /// Which rank.
        rank: usize,
        /// Parameters of the pattern.
        expected: usize,
        /// Inputs that came.
        got: usize,
    },
    /// Bytes, a scalar, or nothing, where the parameter wants another of these.
    #[error("`{param}` of rank {rank} is a {role} and needs {expected}, and got {got}")]
    Kind {
        /// The parameter.
        param: String,
        /// Which rank.
        rank: usize,
        /// The type of the parameter.
        role: &'static str,
        /// What it needs.
        expected: &'static str,
        /// What came.
        got: &'static str,
    },
    /// Fewer elements than the tokens need.
    #[error(
        "`{param}` of rank {rank} holds {got} elements of {dtype}, and {tokens} tokens need {expected}: give a longer buffer or fewer tokens"
    )]
    TooShort {
        /// The parameter.
        param: String,
        /// Which rank.
        rank: usize,
        /// The type of its elements.
        dtype: DType,
        /// The tokens of the run.
        tokens: usize,
        /// Elements that they need.
        expected: usize,
        /// Elements that came.
        got: usize,
    },
}

/// A rank whose inputs fit its program.
pub(super) struct BoundRank<'a> {
    pub(super) program: &'a Program,
    /// Per parameter.
    pub(super) params: Vec<BoundParam<'a>>,
}

/// An argument with its dtype.
#[derive(Clone, Copy)]
pub(super) enum BoundParam<'a> {
    Scalar(f32),
    Elements { tensor: Tensor, bytes: &'a [u8] },
}

/// Checks everything that the walk relies on, so that no input makes it read out of bounds.
pub(super) fn bind<'a>(
    programs: &[&'a Program],
    inputs: &[RankInputs<'a>],
    tokens: usize,
) -> Result<Vec<BoundRank<'a>>, ReferenceError> {
    let pattern = || programs.first().map_or("a pattern", |program| &program.name).to_owned();
    let expected = programs.first().map_or(1, |program| program.dims.ranks as usize);
    if programs.len() != expected || inputs.len() != expected {
        let got = if programs.len() != expected { programs.len() } else { inputs.len() };
        return Err(ReferenceError::Ranks { pattern: pattern(), expected, got });
    }
    if let Some(rank) = programs.iter().position(|program| !alike(programs[0], program)) {
        return Err(ReferenceError::Programs { pattern: pattern(), rank });
    }
    let ranks = programs.iter().zip(inputs).enumerate();
    ranks.map(|(rank, (program, inputs))| bind_rank(program, rank, inputs, tokens)).collect()
}

/// Whether two ranks may run `a` and `b`: the same but for which optional inputs are present, and with
/// the same inputs from the exchange on.
fn alike(a: &Program, b: &Program) -> bool {
    let dims = crate::Dims { present: a.dims.present, ..b.dims };
    let exchanges = |program: &Program| {
        let lines = program.lines.iter();
        lines.filter(|l| l.inst.class() == Class::Exchange).map(|l| l.space).collect::<Vec<_>>()
    };
    a.name == b.name
        && a.dims == dims
        && a.params == b.params
        && a.outputs == b.outputs
        && exchanges(a) == exchanges(b)
        && a.presence_conflict(b).is_none()
}

fn bind_rank<'a>(
    program: &'a Program,
    rank: usize,
    inputs: &RankInputs<'a>,
    tokens: usize,
) -> Result<BoundRank<'a>, ReferenceError> {
    if inputs.0.len() != program.params.len() {
        return Err(ReferenceError::Params {
            pattern: program.name.clone(),
            rank,
            expected: program.params.len(),
            got: inputs.0.len(),
        });
    }
    let params = program.params.iter().zip(&inputs.0).enumerate().map(|(i, (param, input))| {
        let present = !param.optional || program.dims.present.has(crate::ParamId(i as u32));
        let kind = |expected, got| ReferenceError::Kind {
            param: param.name.to_string(),
            rank,
            role: param.role.type_name(),
            expected,
            got,
        };
        let tensor = &program.tensors[i];
        let bytes = match (present, tensor.ty.access, input) {
            // No line reads it.
            (false, _, Input::Absent) => return Ok(BoundParam::Scalar(0.0)),
            (false, ..) => return Err(kind("nothing, as the variant lacks it", "a value")),
            (true, Access::Value, Input::Scalar(x)) => return Ok(BoundParam::Scalar(*x)),
            (true, Access::Value, Input::Absent) => return Err(kind("a scalar", "nothing")),
            (true, Access::Value, Input::Bytes(_)) => return Err(kind("a scalar", "bytes")),
            (true, _, Input::Bytes(bytes)) => *bytes,
            (true, _, Input::Absent) => return Err(kind("bytes", "nothing")),
            (true, _, Input::Scalar(_)) => return Err(kind("bytes", "a scalar")),
        };
        let dtype = tensor.dtype;
        let least = tensor.elements(tokens as u64).try_into().unwrap_or(usize::MAX);
        let got = bytes.len() / dtype.size();
        if got < least {
            return Err(ReferenceError::TooShort {
                param: param.name.to_string(),
                rank,
                dtype,
                tokens,
                expected: least,
                got,
            });
        }
        Ok(BoundParam::Elements { tensor: *tensor, bytes })
    });
    Ok(BoundRank { program, params: params.collect::<Result<_, _>>()? })
}
