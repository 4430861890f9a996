//! Checks a bundle before anything is queued.
//!
//! On the way to a launch these loops cost a few compares per argument: nothing is allocated or formatted
//! unless a rule is broken.

use crate::args::pack::Values;
use crate::args::signature::{Argument, Columns, Kind, Rows};
use crate::args::{Arg, ArgList, Extent};
use crate::error::ErrorKind;
use seamline_codegen::{MAX_ARGS, ParamId, Presence};

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
    if got.dtype != expected.dtype {
        return Err(ErrorKind::DType {
            argument: expected.name.clone(),
            expected: expected.dtype,
            got: got.dtype,
        });
    }
    if let Some(shape) = &got.shape {
        shape_fits(expected, shape.sizes(), got.len, tokens)?;
    }
    // At most 2^31 tokens of 2^16 channels: no product overflows.
    let needed = match expected.rows {
        Rows::Token => tokens as u64 * expected.width,
        Rows::One => expected.width,
        Rows::Permuted => 0,
    };
    match got.len as u64 >= needed {
        true => Ok(()),
        false => Err(ErrorKind::TooShort {
            argument: expected.name.clone(),
            shape: expected.shape,
            tokens,
            expected: needed,
            got: got.len as u64,
        }),
    }
}

/// A stated shape has the dims' number and sizes; only T may be larger than the launch's.
fn shape_fits(expected: &Argument, sizes: &[usize], len: usize, tokens: usize) -> Result<(), ErrorKind> {
    let width = expected.width as usize;
    let fits = match (expected.rows, expected.columns) {
        (Rows::One, _) => sizes == [width],
        (Rows::Token, Columns::One) => matches!(sizes, [t] if *t >= tokens),
        (Rows::Token, _) => matches!(sizes, [t, w] if *t >= tokens && *w == width),
        (Rows::Permuted, _) => matches!(sizes, [_, w] if *w == width),
    };
    if !fits {
        let names = match expected.rows {
            Rows::Token => format!(" with T = {tokens} or more"),
            _ => String::new(),
        };
        let dims = match expected.columns {
            Columns::One => String::new(),
            Columns::Experts => format!(", K = {width}"),
            Columns::Channels => format!(", H = {width}"),
        };
        let expected_shape = format!("{}{names}{dims}", expected.shape);
        return Err(ErrorKind::Shape {
            argument: expected.name.clone(),
            expected: expected_shape,
            got: sizes.to_vec(),
        });
    }
    let elements = sizes.iter().try_fold(1usize, |n, s| n.checked_mul(*s)).unwrap_or(usize::MAX);
    match elements == len {
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
        let bytes = expected.touched(tokens, value.len).checked_mul(expected.dtype.size() as u64);
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
            if !apart && other != output && ends[other] != 0 {
                let name = |i: usize| arguments[i].name.clone();
                return Err(ErrorKind::Overlap { output: name(output), other: name(other) });
            }
        }
    }
    Ok(())
}
