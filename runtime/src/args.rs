//! Typed arguments: where a bundle's memory is, of which dtype, and how much of it there is.

use arrayvec::ArrayVec;
use half::{bf16, f16};
use seamline_codegen::{DType, MAX_ARGS};
use std::marker::PhantomData;

/// The arguments of one launch, in the order that [`Bundle::collect`](crate::Bundle::collect) states.
pub type ArgList<'a> = ArrayVec<Arg<'a>, MAX_ARGS>;

/// One argument.
#[derive(Debug)]
pub enum Arg<'a> {
    /// Read.
    Input(Input<'a>),
    /// An optional parameter that this launch does not have.
    Absent,
    /// A `Scalar`.
    Scalar(f32),
    /// Written.
    Output(Output<'a>),
    /// Read, then written: a `mut` parameter that is assigned and returned.
    InPlace(Output<'a>),
}

/// An element of a typed slice.
pub trait Element: Copy + 'static {
    /// Its dtype.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $d:ident),*) => {$(impl Element for $t { const DTYPE: DType = DType::$d; })*};
}
elements!(bf16 => Bf16, f16 => F16, f32 => F32, i32 => I32);

/// Memory that a launch reads.
#[derive(Debug)]
pub struct Input<'a> {
    pub(crate) memory: Memory,
    pub(crate) dtype: DType,
    /// In elements.
    pub(crate) len: usize,
    lifetime: PhantomData<&'a ()>,
}

/// Memory that a launch writes.
#[derive(Debug)]
pub struct Output<'a> {
    pub(crate) memory: Memory,
    pub(crate) dtype: DType,
    /// In elements.
    pub(crate) len: usize,
    lifetime: PhantomData<&'a mut ()>,
}

/// Where an argument lives.
#[derive(Debug)]
pub(crate) enum Memory {
    Host(*mut u8),
}

impl<'a, T: Element> From<&'a [T]> for Input<'a> {
    fn from(slice: &'a [T]) -> Self {
        Input {
            memory: Memory::Host(slice.as_ptr().cast_mut().cast()),
            dtype: T::DTYPE,
            len: slice.len(),
            lifetime: PhantomData,
        }
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for Input<'a> {
    fn from(vec: &'a Vec<T>) -> Self {
        vec.as_slice().into()
    }
}

impl<'a, T: Element> From<&'a mut [T]> for Output<'a> {
    fn from(slice: &'a mut [T]) -> Self {
        Output {
            memory: Memory::Host(slice.as_mut_ptr().cast()),
            dtype: T::DTYPE,
            len: slice.len(),
            lifetime: PhantomData,
        }
    }
}

impl<'a, T: Element> From<&'a mut Vec<T>> for Output<'a> {
    fn from(vec: &'a mut Vec<T>) -> Self {
        vec.as_mut_slice().into()
    }
}
