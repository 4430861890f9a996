//! Owned memory of a run-time dtype.

use crate::DType;

/// Elements of one dtype, at an address that is a multiple of 16 as a kernel's vector accesses want it.
#[derive(Clone, PartialEq, Eq)]
pub struct Buffer {
    dtype: DType,
    len: usize,
    /// Bytes past the last element stay zero, so that equality of buffers is equality of elements.
    words: Vec<u128>,
}

impl Buffer {
    /// `len` zeros.
    pub fn new(dtype: DType, len: usize) -> Buffer {
        let words = (len * dtype.size()).div_ceil(size_of::<u128>());
        Buffer { dtype, len, words: vec![0; words] }
    }

    /// As many elements as `bytes` holds.
    pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer::new(dtype, bytes.len() / dtype.size());
        let size = buffer.len * dtype.size();
        buffer.bytes_mut().copy_from_slice(&bytes[..size]);
        buffer
    }

    /// The type of its elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// How many elements it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its memory.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len * self.dtype.size()]
    }

    /// Its memory.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len * self.dtype.size()]
    }

    /// Its elements as `E`: `u16` or `half`'s types for the 16-bit dtypes, `u32`, `f32` or `i32` for the
    /// others. `None` where the size of `E` is not the dtype's.
    pub fn as_slice<E: bytemuck::Pod>(&self) -> Option<&[E]> {
        (size_of::<E>() == self.dtype.size()).then(|| bytemuck::cast_slice(self.bytes()))
    }

    /// Its elements as `E`, to be written; see [`as_slice`](Buffer::as_slice).
    pub fn as_mut_slice<E: bytemuck::Pod>(&mut self) -> Option<&mut [E]> {
        (size_of::<E>() == self.dtype.size()).then(|| bytemuck::cast_slice_mut(self.bytes_mut()))
    }

    /// Its elements converted to f32.
    pub fn to_f32(&self) -> Vec<f32> {
        let mut values = vec![0.0; self.len];
        crate::numerics::load(self.dtype, self.bytes(), &mut values);
        values
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} x {})", self.len, self.dtype)
    }
}
