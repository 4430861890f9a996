//! Checks a bundle before anything is queued.
//!
//! On the way to a launch these loops cost a few compares per argument: nothing is allocated or formatted
//! unless a rule is broken.

use crate::args::pack::Values;
use crate::args::signature::{Argument, Kind};
use crate::args::{Arg, ArgList, Extent};
use crate::error::ErrorKind;
use seamline_codegen::tensor::Dim;
use seamline_codegen::{MAX_ARGS, ParamId, Presence, Tensor};

/// Everything that needs no address: kinds, presence, dtypes, shapes, lengths. Answers the variant.
#[inline]
pub(crate) fn structure(
    arguments: &[Argument],
    args: &ArgList<'_>,
    tokens: usize,
) -> Result<Presence, ErrorKind> {
    if args.len() != arguments.len() {
        return Err(ErrorKind::Arguments { expected: arguments.len(), got: args.len() });
    }
    let mut present = Presence::ALL;
    for (i, (expected, arg)) in arguments.iter().zip(args).enumerate() {
        match (expected.kind, arg) {
            (Kind::Input, Arg::Input(input)) => extent(expected, &input.extent, tokens)?,
            (Kind::Output, Arg::Output(output)) | (Kind::InPlace, Arg::InPlace(output)) => {
                extent(expected, &output.extent, tokens)?;
            }
            (Kind::Scalar, Arg::Scalar(_)) => {}
            (Kind::Input, Arg::Absent) if expected.optional => present = present.without(ParamId(i as u32)),
            _ => return Err(wrong_kind(expected, arg)),
        }
    }
    Ok(present)
}

#[inline]
fn extent(expected: &Argument, got: &Extent, tokens: usize) -> Result<(), ErrorKind> {
    let tensor = &expected.tensor;
    if got.dtype != tensor.dtype {
        return Err(ErrorKind::DType {
            argument: expected.name.clone(),
            expected: tensor.dtype,
            got: got.dtype,
        });
    }
    if let Some(shape) = &got.shape {
        shape_fits(expected, shape.sizes(), got.len, tokens)?;
    }
    // At most 2^31 tokens of 2^16 channels: no product overflows.
    let needed = tensor.elements(tokens as u64);
    match got.len as u64 >= needed {
        true => Ok(()),
        false => Err(ErrorKind::TooShort {
            argument: expected.name.clone(),
            shape: tensor.ty.shape(),
            tokens,
            expected: needed,
            got: got.len as u64,
        }),
    }
}

/// A stated shape has the dims' number and sizes; only T may be larger than the launch's.
fn shape_fits(expected: &Argument, sizes: &[usize], len: usize, tokens: usize) -> Result<(), ErrorKind> {
    let tensor = &expected.tensor;
    let (dims, width) = (tensor.ty.dims, tensor.width as usize);
    let fits = |(dim, size): (&Dim, &usize)| match dim {
        Dim::Tokens => *size >= tokens,
        Dim::Rows => true,
        Dim::Hidden | Dim::TopK => *size == width,
    };
    if dims.len() != sizes.len() || !dims.iter().zip(sizes).all(fits) {
        let size = |dim: &Dim| match dim {
            Dim::Tokens => format!(" with T = {tokens} or more"),
            Dim::Rows => String::new(),
            Dim::Hidden | Dim::TopK => format!(", {} = {width}", dim.letter()),
        };
        let sized = dims.iter().map(size).collect::<String>();
        return Err(ErrorKind::Shape {
            argument: expected.name.clone(),
            expected: format!("{}{sized}", tensor.ty.shape()),
            got: sizes.to_vec(),
        });
    }
    let rows = match tensor.ty.has_rows() {
        true => sizes[0],
        false => 1,
    };
    let elements = match (tensor.is_dense(), (rows as u64).checked_sub(1)) {
        (false, Some(before)) => before.saturating_mul(tensor.stride).saturating_add(tensor.width) as usize,
        _ => sizes.iter().try_fold(1usize, |n, s| n.checked_mul(*s)).unwrap_or(usize::MAX),
    };
    // Of rows with a gap between them, the last may have one behind it or not.
    match elements == len || !tensor.is_dense() && elements <= len {
        true => Ok(()),
        false => Err(ErrorKind::ShapeLength {
            argument: expected.name.clone(),
            shape: sizes.to_vec(),
            expected: elements,
            got: len,
        }),
    }
}

/// Whether `got` is of the kind that is expected, at any length; nothing where that may be absent.
pub(crate) fn kind(expected: &Argument, got: &Arg<'_>) -> Result<(), ErrorKind> {
    match (expected.kind, got) {
        (Kind::Input, Arg::Input(_))
        | (Kind::Output, Arg::Output(_))
        | (Kind::InPlace, Arg::InPlace(_))
        | (Kind::Scalar, Arg::Scalar(_)) => Ok(()),
        (Kind::Input, Arg::Absent) if expected.optional => Ok(()),
        _ => Err(wrong_kind(expected, got)),
    }
}

#[cold]
fn wrong_kind(expected: &Argument, got: &Arg<'_>) -> ErrorKind {
    ErrorKind::ArgumentKind {
        argument: expected.name.clone(),
        expected: match expected.kind {
            Kind::Input if expected.optional => "an optional input",
            Kind::Input => "an input that is always present",
            Kind::Scalar => "a scalar",
            Kind::InPlace => "written in place",
            Kind::Output => "an output",
        },
        got: match got {
            Arg::Input(_) => "an input",
            Arg::Absent => "nothing",
            Arg::Scalar(_) => "a scalar",
            Arg::Output(_) => "an output",
            Arg::InPlace(_) => "an output in place",
        },
    }
}

/// What needs addresses: that there can be memory, alignment, and that nobody else uses what is written.
#[inline]
pub(crate) fn places(arguments: &[Argument], values: &Values, tokens: u64) -> Result<(), ErrorKind> {
    let mut ends = [0; MAX_ARGS];
    for (i, expected) in arguments.iter().enumerate() {
        let value = values[i];
        // Absent, a scalar, or no permuted rows.
        if value.len == 0 {
            continue;
        }
        if !value.word.is_multiple_of(expected.align) {
            return Err(ErrorKind::Misaligned {
                argument: expected.name.clone(),
                address: value.word,
                expected: expected.align,
            });
        }
        // Only a raw address can lie so.
        let touched = expected.tensor.touched(tokens, value.len);
        let bytes = touched.checked_mul(expected.tensor.dtype.size() as u64);
        match bytes.and_then(|bytes| value.word.checked_add(bytes)).filter(|_| value.word != 0) {
            Some(end) => ends[i] = end,
            None => {
                return Err(ErrorKind::Address {
                    argument: expected.name.clone(),
                    address: value.word,
                    len: value.len,
                });
            }
        }
    }
    let written = |i: usize| matches!(arguments[i].kind, Kind::InPlace | Kind::Output);
    for output in (0..arguments.len()).rev().filter(|i| written(*i)) {
        for other in 0..arguments.len() {
            let apart = ends[output] <= values[other].word || ends[other] <= values[output].word;
            let interleaved = || {
                let starts = (values[output].word, values[other].word);
                interleaved(&arguments[output].tensor, &arguments[other].tensor, starts)
            };
            if !apart && other != output && ends[other] != 0 && !interleaved() {
                let name = |i: usize| arguments[i].name.clone();
                return Err(ErrorKind::Overlap { output: name(output), other: name(other) });
            }
        }
    }
    Ok(())
}

/// Whether the rows of one lie in the gaps between the rows of the other: two columns of one wider buffer.
fn interleaved(a: &Tensor, b: &Tensor, (start_a, start_b): (u64, u64)) -> bool {
    let stride = a.bytes(a.stride);
    if a.is_dense() || b.is_dense() || stride != b.bytes(b.stride) {
        return false;
    }
    let between = start_b.wrapping_sub(start_a) as i64;
    let offset = between.rem_euclid(stride as i64) as u64;
    offset >= a.bytes(a.width) && offset + b.bytes(b.width) <= stride
}

#[cfg(test)]
mod tests {
    use super::*;
    use seamline_codegen::{DType, Dims, Elem, Role, Strides};

    #[test]
    fn columns_of_one_buffer_are_apart() {
        let (dtype, present) = (DType::Bf16, Presence::ALL);
        let dims =
            Dims { hidden: 6, top_k: 0, ranks: 1, dtype, wire: dtype, present, strides: Strides::default() };
        let rows = |stride| Role::Tokens(Elem::Pattern).tensor().bind(&dims, stride);
        let apart = |start_a, start_b| interleaved(&rows(Some(12)), &rows(Some(12)), (start_a, start_b));
        assert!(apart(0, 12) && apart(12, 0) && apart(0, 36) && apart(100, 64));
        assert!(!apart(0, 0) && !apart(0, 10) && !apart(14, 0) && !apart(0, 24));
        assert!(!interleaved(&rows(Some(12)), &rows(Some(13)), (0, 12)));
        assert!(!interleaved(&rows(None), &rows(Some(12)), (0, 12)));
    }
}
