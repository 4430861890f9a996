//! A bundle that is filled by name.

use crate::args::signature::{Argument, Kind};
use crate::args::{Arg, Input, Output, check};
use crate::error::{Error, ErrorKind};
use crate::kernel::Inner;
use arrayvec::ArrayVec;
use seamline_codegen::MAX_ARGS;

/// The arguments of one launch by name, for the kernel that [made](crate::Kernel::args) it or one that was prepared with it
/// on another rank. Optional inputs that are not given are absent; whatever else is not given is told by the launch.
#[derive(Debug)]
pub struct NamedArgs<'k, 'a> {
    kernel: &'k Inner,
    pub(super) tokens: usize,
    /// By argument.
    pub(super) given: ArrayVec<Option<Arg<'a>>, MAX_ARGS>,
}

impl<'k, 'a> NamedArgs<'k, 'a> {
    pub(super) fn new(kernel: &'k Inner, tokens: usize) -> NamedArgs<'k, 'a> {
        NamedArgs { kernel, tokens, given: kernel.plan.arguments.iter().map(|_| None).collect() }
    }

    /// Gives an input.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownArgument`], [`ErrorKind::ArgumentTwice`], or [`ErrorKind::ArgumentKind`].
    pub fn input(&mut self, name: &str, input: impl Into<Input<'a>>) -> Result<&mut Self, Error> {
        self.give(name, |_| Arg::Input(input.into()))
    }

    /// Gives an output, or an argument that is updated in place.
    ///
    /// # Errors
    /// As [`input`](NamedArgs::input).
    pub fn output(&mut self, name: &str, output: impl Into<Output<'a>>) -> Result<&mut Self, Error> {
        self.give(name, |expected| match expected.kind {
            Kind::InPlace => Arg::InPlace(output.into()),
            _ => Arg::Output(output.into()),
        })
    }

    /// Gives a scalar.
    ///
    /// # Errors
    /// As [`input`](NamedArgs::input).
    pub fn scalar(&mut self, name: &str, value: f32) -> Result<&mut Self, Error> {
        self.give(name, |_| Arg::Scalar(value))
    }

    fn give(&mut self, name: &str, arg: impl FnOnce(&Argument) -> Arg<'a>) -> Result<&mut Self, Error> {
        let located = |kind| Error::from(kind).of(&self.kernel.plan.graph.name, Some(self.kernel.rank.index));
        let arguments = &self.kernel.plan.arguments;
        let Some(at) = arguments.iter().position(|argument| argument.name == name) else {
            let known: Vec<_> = arguments.iter().map(|argument| format!("`{}`", argument.name)).collect();
            return Err(located(ErrorKind::UnknownArgument { name: name.into(), known: known.join(", ") }));
        };
        let arg = arg(&arguments[at]);
        check::kind(&arguments[at], &arg).map_err(located)?;
        match self.given[at].replace(arg) {
            Some(_) => Err(located(ErrorKind::ArgumentTwice { argument: name.into() })),
            None => Ok(self),
        }
    }
}
