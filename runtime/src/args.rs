//! Typed arguments: where a bundle's memory is, of which dtype, and how much of it there is.

pub(crate) mod check;
mod list;
pub(crate) mod pack;
pub(crate) mod signature;
#[cfg(feature = "cuda")]
pub(crate) mod slice;

#[cfg(feature = "cuda")]
use crate::args::slice::{Read, Write};
use half::{bf16, f16};
pub use list::ArgList;
use seamline_codegen::reference::Buffer;
use seamline_codegen::{DType, e4m3};
use std::fmt;
use std::marker::PhantomData;
#[cfg(feature = "cuda")]
use std::ptr::NonNull;

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

/// An element of a typed slice: `bf16`, `f16`, `f32`, `i32` or `e4m3`.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// Its dtype.
    const DTYPE: DType;
}

mod sealed {
    /// Types without padding, of which every bit pattern is a value.
    pub trait Sealed {}
}

macro_rules! elements {
    ($($t:ty => $d:ident),*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t { const DTYPE: DType = DType::$d; }
    )*};
}
elements!(bf16 => Bf16, f16 => F16, f32 => F32, i32 => I32, e4m3 => E4m3);

/// Memory that a launch reads.
///
/// Made with `into()` from a slice: of the host, for a host executor, or cudarc's, for a GPU; or from a raw
/// [address](Input::raw). Elements are `bf16` and `f16` of `half` 2, `f32`, and `i32` for a row map.
///
/// # Layout
/// Contiguous, row by row, and long enough for the launch's tokens; what is behind them is not touched. It begins at a
/// multiple of 16 bytes (of less where a row is not a multiple of that), as device allocations and, in practice, `Vec`s do, and
/// arrays on the stack need not.
pub struct Input<'a> {
    pub(crate) memory: Source<'a>,
    pub(crate) extent: Extent,
}

/// Memory that a launch writes.
///
/// Made with `into()` from a mutable slice: of the host, for a host executor, or cudarc's, for a GPU; or from
/// a raw [address](Output::raw). Its layout is as an [`Input`]'s, and it overlaps no other argument.
pub struct Output<'a> {
    pub(crate) memory: Destination<'a>,
    pub(crate) extent: Extent,
}

/// Where an input lives.
pub(crate) enum Source<'a> {
    Host(*const u8, PhantomData<&'a [u8]>),
    Raw(u64),
    #[cfg(feature = "cuda")]
    Device(&'a dyn Read),
}

/// Where an output lives.
pub(crate) enum Destination<'a> {
    Host(*mut u8, PhantomData<&'a mut [u8]>),
    Raw(u64),
    /// A `&'a mut dyn Write`, by a pointer so that bundles of shorter lives can be made of it: nothing is
    /// ever put there.
    #[cfg(feature = "cuda")]
    Device(NonNull<dyn Write + 'a>),
}

// SAFETY: the pointers are a borrowed slice's of plain elements, which may go to another thread as the slice
// may.
unsafe impl Send for Source<'_> {}
// SAFETY: as above; `Write` is `Send`.
unsafe impl Send for Destination<'_> {}

#[cfg(feature = "cuda")]
impl<'a> Destination<'a> {
    pub(crate) fn device(slice: &'a mut (impl Write + 'a)) -> Destination<'a> {
        Destination::Device(NonNull::from(slice as &'a mut (dyn Write + 'a)))
    }
}

/// How much there is, and of what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) dtype: DType,
    /// In elements.
    pub(crate) len: usize,
    pub(crate) shape: Option<Shape>,
}

/// Sizes of up to four dims.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    sizes: [usize; 4],
    dims: u8,
}

impl Shape {
    fn new(sizes: &[usize]) -> Shape {
        let mut shape = Shape { sizes: [1; 4], dims: sizes.len().min(4) as u8 };
        shape.sizes[..sizes.len().min(4)].copy_from_slice(&sizes[..sizes.len().min(4)]);
        shape
    }

    pub(crate) fn sizes(&self) -> &[usize] {
        &self.sizes[..usize::from(self.dims)]
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sizes().fmt(f)
    }
}

impl Extent {
    fn of<T: Element>(len: usize) -> Extent {
        Extent { dtype: T::DTYPE, len, shape: None }
    }
}

impl Input<'_> {
    /// `len` elements at `address`: of the device's memory for a GPU, of the host's for a host executor.
    ///
    /// # Safety
    /// The elements stay readable, and are written by nobody, until the launch that gets them has ended; and
    /// every replay of a graph that captured it.
    pub const unsafe fn raw(address: u64, dtype: DType, len: usize) -> Self {
        Input { memory: Source::Raw(address), extent: Extent { dtype, len, shape: None } }
    }

    /// States its shape, to be checked dim by dim. Without it any buffer that is long enough will do.
    ///
    /// ```
    /// # use seamline_runtime::Input;
    /// let map = [0, 1, 2, -1];
    /// let input = Input::from(&map).shaped([2, 2]); // [T, K]
    /// ```
    #[must_use]
    pub fn shaped<const N: usize>(mut self, sizes: [usize; N]) -> Self {
        const { assert!(N >= 1 && N <= 4, "a shape has 1 to 4 dims") };
        self.extent.shape = Some(Shape::new(&sizes));
        self
    }
}

impl Output<'_> {
    /// `len` elements at `address`: of the device's memory for a GPU, of the host's for a host executor.
    ///
    /// # Safety
    /// The elements stay writable, and are used by nobody else, until the launch that gets them has ended;
    /// and every replay of a graph that captured it.
    pub const unsafe fn raw(address: u64, dtype: DType, len: usize) -> Self {
        Output { memory: Destination::Raw(address), extent: Extent { dtype, len, shape: None } }
    }

    /// States its shape, to be checked dim by dim. Without it any buffer that is long enough will do.
    #[must_use]
    pub fn shaped<const N: usize>(mut self, sizes: [usize; N]) -> Self {
        const { assert!(N >= 1 && N <= 4, "a shape has 1 to 4 dims") };
        self.extent.shape = Some(Shape::new(&sizes));
        self
    }
}

impl<'a, T: Element> From<&'a [T]> for Input<'a> {
    fn from(slice: &'a [T]) -> Self {
        Input {
            memory: Source::Host(slice.as_ptr().cast(), PhantomData),
            extent: Extent::of::<T>(slice.len()),
        }
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for Input<'a> {
    fn from(vec: &'a Vec<T>) -> Self {
        vec.as_slice().into()
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for Input<'a> {
    fn from(array: &'a [T; N]) -> Self {
        array.as_slice().into()
    }
}

impl<'a, T: Element> From<&'a mut [T]> for Output<'a> {
    fn from(slice: &'a mut [T]) -> Self {
        let len = slice.len();
        Output {
            memory: Destination::Host(slice.as_mut_ptr().cast(), PhantomData),
            extent: Extent::of::<T>(len),
        }
    }
}

impl<'a, T: Element> From<&'a mut Vec<T>> for Output<'a> {
    fn from(vec: &'a mut Vec<T>) -> Self {
        vec.as_mut_slice().into()
    }
}

impl<'a, T: Element, const N: usize> From<&'a mut [T; N]> for Output<'a> {
    fn from(array: &'a mut [T; N]) -> Self {
        array.as_mut_slice().into()
    }
}

impl<'a> From<&'a Buffer> for Input<'a> {
    fn from(buffer: &'a Buffer) -> Self {
        let extent = Extent { dtype: buffer.dtype(), len: buffer.len(), shape: None };
        Input { memory: Source::Host(buffer.bytes().as_ptr(), PhantomData), extent }
    }
}

impl<'a> From<&'a mut Buffer> for Output<'a> {
    fn from(buffer: &'a mut Buffer) -> Self {
        let extent = Extent { dtype: buffer.dtype(), len: buffer.len(), shape: None };
        Output { memory: Destination::Host(buffer.bytes_mut().as_mut_ptr(), PhantomData), extent }
    }
}

#[cfg(feature = "cuda")]
mod device {
    use super::*;
    use cudarc::driver::{CudaSlice, CudaView, CudaViewMut};

    macro_rules! inputs {
        ($($t:ty),*) => {$(
            impl<'a, T: Element> From<&'a $t> for Input<'a> {
                fn from(slice: &'a $t) -> Self {
                    Input { memory: Source::Device(slice), extent: Extent::of::<T>(slice.len()) }
                }
            }
        )*};
    }
    inputs!(CudaSlice<T>, CudaView<'_, T>);

    macro_rules! outputs {
        ($($t:ty),*) => {$(
            impl<'a, T: Element> From<&'a mut $t> for Output<'a> {
                fn from(slice: &'a mut $t) -> Self {
                    let extent = Extent::of::<T>(slice.len());
                    Output { memory: Destination::device(slice), extent }
                }
            }
        )*};
    }
    outputs!(CudaSlice<T>, CudaViewMut<'_, T>);
}

/// What an argument is, for messages and `Debug`.
pub(crate) fn place(raw: bool, host: bool) -> &'static str {
    match (raw, host) {
        (true, _) => "a raw address",
        (_, true) => "a host slice",
        _ => "a cudarc slice",
    }
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = place(matches!(self.memory, Source::Raw(_)), matches!(self.memory, Source::Host(..)));
        write!(
            f,
            "Input({place}, {} x {}, shape {:?})",
            self.extent.len, self.extent.dtype, self.extent.shape
        )
    }
}

impl fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place =
            place(matches!(self.memory, Destination::Raw(_)), matches!(self.memory, Destination::Host(..)));
        write!(
            f,
            "Output({place}, {} x {}, shape {:?})",
            self.extent.len, self.extent.dtype, self.extent.shape
        )
    }
}
