//! The arguments of one launch.

use crate::args::Arg;
use arrayvec::ArrayVec;
use seamline_codegen::MAX_ARGS;
use std::ops::{Deref, DerefMut};

/// The arguments of one launch, in the order that [`Bundle::collect`](crate::Bundle::collect) states. As many as a pattern
/// can have, in place: to fill one allocates nothing.
#[derive(Debug, Default)]
pub struct ArgList<'a>(ArrayVec<Arg<'a>, MAX_ARGS>);

impl<'a> ArgList<'a> {
    /// None yet.
    pub const fn new() -> ArgList<'a> {
        ArgList(ArrayVec::new_const())
    }

    /// One more.
    ///
    /// # Panics
    /// When there are 32 already, which is more than any pattern has.
    #[inline]
    pub fn push(&mut self, arg: Arg<'a>) {
        self.0.push(arg);
    }
}

impl<'a> Deref for ArgList<'a> {
    type Target = [Arg<'a>];

    fn deref(&self) -> &[Arg<'a>] {
        &self.0
    }
}

impl<'a> DerefMut for ArgList<'a> {
    fn deref_mut(&mut self) -> &mut [Arg<'a>] {
        &mut self.0
    }
}

impl<'a> Extend<Arg<'a>> for ArgList<'a> {
    fn extend<I: IntoIterator<Item = Arg<'a>>>(&mut self, args: I) {
        self.0.extend(args);
    }
}

impl<'a> FromIterator<Arg<'a>> for ArgList<'a> {
    fn from_iter<I: IntoIterator<Item = Arg<'a>>>(args: I) -> ArgList<'a> {
        ArgList(args.into_iter().collect())
    }
}

impl<'l, 'a> IntoIterator for &'l ArgList<'a> {
    type Item = &'l Arg<'a>;
    type IntoIter = std::slice::Iter<'l, Arg<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'l, 'a> IntoIterator for &'l mut ArgList<'a> {
    type Item = &'l mut Arg<'a>;
    type IntoIter = std::slice::IterMut<'l, Arg<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
