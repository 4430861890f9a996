//! What a parameter or a result is in memory: as a graph says it, and with the dims filled in.
//!
//! Checks, packing, the reference, workloads, emission, docs and messages read these two types; nothing else knows the
//! shape of a role.

use crate::graph::Elem;
use crate::program::Space;
use crate::{DType, Dims};

/// A dim of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// T, the tokens of a launch.
    Tokens,
    /// H, the channels of a token.
    Hidden,
    /// K, the experts of a token.
    TopK,
    /// P, the permuted rows: as many as there are.
    Rows,
}

impl Dim {
    /// Its letter in shapes.
    pub const fn letter(self) -> &'static str {
        match self {
            Dim::Tokens => "T",
            Dim::Hidden => "H",
            Dim::TopK => "K",
            Dim::Rows => "P",
        }
    }
}

/// When and how a kernel may read a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Passed by value.
    Value,
    /// Constant weights: read before the kernel in front has ended.
    Weights,
    /// What the kernel in front may have written.
    Activations,
}

/// What a tensor is before any dim is known. Its last dim is contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Its dims, outermost first.
    pub dims: &'static [Dim],
    /// The dtype of its elements.
    pub elem: Elem,
    /// When it is read.
    pub access: Access,
}

impl TensorType {
    /// Its shape, in the words of the documentation: `[T, H]`.
    pub fn shape(&self) -> String {
        match self.dims {
            [] => "one value".to_owned(),
            dims => format!("[{}]", dims.iter().map(|d| d.letter()).collect::<Vec<_>>().join(", ")),
        }
    }

    /// What its elements vary over as a value; `None` where only an operation reads it.
    pub const fn space(&self) -> Option<Space> {
        match self.dims {
            [] => Some(Space::Uniform),
            [Dim::Tokens] => Some(Space::Token),
            [Dim::Hidden] => Some(Space::Channel),
            [Dim::Tokens, Dim::Hidden] => Some(Space::TokenChannel),
            _ => None,
        }
    }

    /// Whether `dim` is one of its dims.
    pub fn has(&self, dim: Dim) -> bool {
        self.dims.contains(&dim)
    }

    /// Whether it has rows, so that one may lie farther from the next than it is long.
    pub const fn has_rows(&self) -> bool {
        self.dims.len() > 1
    }

    /// The tensor of a kernel for `dims`, with `stride` elements from row to row, or dense.
    pub fn bind(self, dims: &Dims, stride: Option<u32>) -> Tensor {
        let size = |dim: &Dim| match dim {
            Dim::Hidden => u64::from(dims.hidden),
            Dim::TopK => u64::from(dims.top_k),
            Dim::Tokens | Dim::Rows => 1,
        };
        let width = self.dims.iter().map(size).product();
        Tensor { ty: self, dtype: self.elem.bind(dims.dtype), width, stride: stride.map_or(width, u64::from) }
    }
}

/// A tensor of a kernel: all but T and P is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tensor {
    /// What it is.
    pub ty: TensorType,
    /// The dtype of its elements.
    pub dtype: DType,
    /// Elements of a row: of a token, of a permuted row, or all that there are.
    pub width: u64,
    /// Elements from one row to the next. What lies between them is neither read nor written.
    pub stride: u64,
}

impl Tensor {
    /// Whether it has a row for every token.
    pub fn is_per_token(&self) -> bool {
        self.ty.dims.first() == Some(&Dim::Tokens)
    }

    /// Whether it has as many rows as come.
    pub fn is_permuted(&self) -> bool {
        self.ty.dims.first() == Some(&Dim::Rows)
    }

    /// Whether rows follow each other without a gap.
    pub fn is_dense(&self) -> bool {
        self.stride == self.width
    }

    /// The largest number of elements that divides every row's place and length.
    pub fn unit(&self) -> u64 {
        greatest_common_divisor(self.width, self.stride)
    }

    /// Elements that a launch of `tokens` tokens needs. Any number of permuted rows will do.
    pub fn elements(&self, tokens: u64) -> u64 {
        match self.ty.dims.first() {
            Some(Dim::Tokens) => self.of_rows(tokens),
            Some(Dim::Rows) => 0,
            _ => self.width,
        }
    }

    /// Elements that a launch of `tokens` tokens may touch, of `len` that there are.
    pub fn touched(&self, tokens: u64, len: u64) -> u64 {
        match self.is_permuted() {
            true => self.of_rows(self.rows(len)),
            false => self.elements(tokens),
        }
    }

    /// Whole rows in `len` elements.
    pub fn rows(&self, len: u64) -> u64 {
        match len.checked_sub(self.width) {
            Some(rest) => rest / self.stride + 1,
            None => 0,
        }
    }

    /// Elements from one token's row to the next; 0 where the tokens share them.
    pub fn token_stride(&self) -> u64 {
        if self.is_per_token() { self.stride } else { 0 }
    }

    /// Bytes of `elements` elements that memory holds.
    pub fn bytes(&self, elements: u64) -> u64 {
        elements * self.dtype.size() as u64
    }

    /// Bytes that a launch of `tokens` tokens moves of it, each once; `top_k` rows a token where they are permuted.
    pub fn moved(&self, tokens: u64, top_k: u32) -> u64 {
        let rows = match (self.ty.access, self.ty.dims.first()) {
            (Access::Value, _) => 0,
            (_, Some(Dim::Tokens)) => tokens,
            (_, Some(Dim::Rows)) => tokens * u64::from(top_k),
            _ => tokens.min(1),
        };
        self.bytes(rows * self.width)
    }

    /// What its address must be a multiple of, in bytes. Rows of channels are moved by the widest accesses, up to 16
    /// bytes, that their length and stride divide into; everything else element by element.
    pub fn align(&self) -> u64 {
        match self.ty.has(Dim::Hidden) {
            true => (1 << self.bytes(self.unit()).trailing_zeros()).min(16),
            false => self.dtype.size() as u64,
        }
    }

    /// The rows of `bytes`, without what lies between them.
    pub fn dense(&self, bytes: &[u8]) -> Vec<u8> {
        let (width, stride) = (self.bytes(self.width) as usize, self.bytes(self.stride) as usize);
        bytes.chunks(stride).flat_map(|row| &row[..width.min(row.len())]).copied().collect()
    }

    fn of_rows(&self, rows: u64) -> u64 {
        rows.checked_sub(1).map_or(0, |before| before.saturating_mul(self.stride).saturating_add(self.width))
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Presence, Role, Strides};

    fn tensor(role: Role, hidden: u32, stride: Option<u32>) -> Tensor {
        let (dtype, present) = (DType::Bf16, Presence::ALL);
        role.tensor().bind(
            &Dims { hidden, top_k: 8, ranks: 1, dtype, wire: dtype, present, strides: Strides::default() },
            stride,
        )
    }

    const TOKENS: Role = Role::Tokens(Elem::Pattern);
    const PERMUTED: Role = Role::Permuted(Elem::Pattern);

    #[test]
    fn alignment_is_that_of_the_widest_access() {
        assert_eq!(tensor(TOKENS, 7168, None).align(), 16);
        assert_eq!(tensor(TOKENS, 2884, None).align(), 8);
        assert_eq!(tensor(TOKENS, 7, None).align(), 2);
        assert_eq!(tensor(TOKENS, 7168, Some(7172)).align(), 8);
        assert_eq!(tensor(Role::RowMap, 7168, None).align(), 4);
        assert_eq!(tensor(Role::Scalar, 7168, None).align(), 4);
    }

    #[test]
    fn the_last_row_needs_no_padding_behind_it() {
        let rows = tensor(TOKENS, 6, Some(10));
        assert_eq!([0, 1, 2, 3].map(|tokens| rows.elements(tokens)), [0, 6, 16, 26]);
        assert_eq!([0, 5, 6, 15, 16, 26].map(|len| rows.rows(len)), [0, 0, 1, 1, 2, 3]);
        assert_eq!((rows.token_stride(), rows.unit()), (10, 2));
        let permuted = tensor(PERMUTED, 6, Some(10));
        assert_eq!((permuted.elements(9), permuted.touched(9, 17), permuted.token_stride()), (0, 16, 0));
        let weights = tensor(Role::Channels(Elem::Pattern), 6, None);
        assert_eq!((weights.elements(9), weights.touched(9, 7), weights.token_stride()), (6, 6, 0));
    }

    #[test]
    fn dense_leaves_out_what_lies_between_rows() {
        let rows = tensor(TOKENS, 1, Some(3));
        assert_eq!(rows.dense(&[1, 2, 0, 0, 0, 0, 3, 4]), [1, 2, 3, 4]);
    }

    #[test]
    fn shapes_are_written_with_letters() {
        let roles = [TOKENS, PERMUTED, Role::RowMap, Role::Channels(Elem::Pattern), Role::Scalar];
        let shapes = roles.map(|r| r.tensor().shape());
        assert_eq!(shapes, ["[T, H]", "[P, H]", "[T, K]", "[H]", "one value"]);
    }
}
