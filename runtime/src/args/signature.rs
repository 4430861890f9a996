//! What a kernel's arguments must be: the graph's parameters and outputs with the dims filled in.

use seamline_codegen::{DType, Graph, Program, Role};

/// One argument of a bundle, in [`Bundle::collect`](crate::Bundle::collect)'s order.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) optional: bool,
    pub(crate) dtype: DType,
    /// How its elements follow from the tokens.
    pub(crate) rows: Rows,
    /// What a row has an element for.
    pub(crate) columns: Columns,
    /// Elements of a row.
    pub(crate) width: u64,
    /// What its address must be a multiple of.
    pub(crate) align: u64,
    /// Its shape, by the names of its dims.
    pub(crate) shape: &'static str,
    /// Constant weights: read before the wait for the preceding kernel.
    pub(crate) constant: bool,
}

/// How an argument is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Input,
    Scalar,
    InPlace,
    Output,
}

/// What an argument has a row for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Every token.
    Token,
    /// Every permuted row: as many as there are.
    Permuted,
    /// It has one.
    One,
}

/// What a row of an argument has an element for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    /// It is one element.
    One,
    /// Every expert of a token.
    Experts,
    /// Every channel.
    Channels,
}

impl Argument {
    /// Bytes from one token's row to the next; 0 where the tokens share them.
    pub(crate) fn token_bytes(&self) -> u64 {
        match self.rows {
            Rows::Token => self.width * self.dtype.size() as u64,
            Rows::Permuted | Rows::One => 0,
        }
    }

    /// Elements that a launch of `tokens` tokens touches, of `len` that there are.
    pub(crate) fn touched(&self, tokens: u64, len: u64) -> u64 {
        match self.rows {
            Rows::Token => tokens * self.width,
            Rows::Permuted => len - len % self.width,
            Rows::One => self.width,
        }
    }
}

/// The arguments of `program`'s bundle, absent ones too.
pub(crate) fn arguments(graph: &Graph, program: &Program) -> Vec<Argument> {
    let (hidden, top_k) = (u64::from(program.dims.hidden), u64::from(program.dims.top_k));
    let params = graph.params.iter().map(|param| {
        let dtype = param.role.dtype(program.dims.dtype);
        let (rows, columns) = match param.role {
            Role::Permuted(_) => (Rows::Permuted, Columns::Channels),
            Role::RowMap | Role::ExpertWeights(_) => (Rows::Token, Columns::Experts),
            Role::PerToken(_) => (Rows::Token, Columns::One),
            Role::Channels(_) => (Rows::One, Columns::Channels),
            Role::Scalar => (Rows::One, Columns::One),
            // `Tokens`, and whatever else has a row of channels per token.
            _ => (Rows::Token, Columns::Channels),
        };
        let (width, align) = match columns {
            Columns::One => (1, dtype.size() as u64),
            Columns::Experts => (top_k, index_align(top_k, dtype)),
            Columns::Channels => (hidden, row_align(hidden, dtype)),
        };
        Argument {
            name: param.name.to_string(),
            kind: match param.role {
                _ if param.in_place.is_some() => Kind::InPlace,
                Role::Scalar => Kind::Scalar,
                _ => Kind::Input,
            },
            optional: param.optional,
            dtype,
            rows,
            columns,
            width,
            align,
            shape: param.role.shape(),
            constant: matches!(param.role, Role::Channels(_)),
        }
    });
    let outputs = program.outputs.iter().filter(|o| o.in_place.is_none()).map(|output| Argument {
        name: output.name.clone(),
        kind: Kind::Output,
        optional: false,
        dtype: output.dtype,
        rows: Rows::Token,
        columns: Columns::Channels,
        width: hidden,
        align: row_align(hidden, output.dtype),
        shape: "[T, H]",
        constant: false,
    });
    params.chain(outputs).collect()
}

/// Rows are moved by the widest accesses, up to 16 bytes, that their size divides into.
fn row_align(hidden: u64, dtype: DType) -> u64 {
    let bytes = hidden * dtype.size() as u64;
    (1 << bytes.trailing_zeros()).min(16)
}

/// Indices and f32 weights are loaded 4, 2 or 1 at a time; narrower weights one by one.
fn index_align(top_k: u64, dtype: DType) -> u64 {
    match dtype.size() {
        4 => 4 << top_k.trailing_zeros().min(2),
        size => size as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_is_that_of_the_widest_access() {
        assert_eq!(row_align(7168, DType::Bf16), 16);
        assert_eq!(row_align(2884, DType::Bf16), 8);
        assert_eq!(row_align(7, DType::Bf16), 2);
        assert_eq!(index_align(8, DType::I32), 16);
        assert_eq!(index_align(6, DType::I32), 8);
        assert_eq!(index_align(5, DType::F32), 4);
        assert_eq!(index_align(8, DType::Bf16), 2);
    }
}
