//! What a kernel is specialised for, and how it is bound.

use crate::{DType, Graph, ParamId};

/// Largest hidden size: 8 CTAs of 1024 threads, 8 channels each.
pub const MAX_HIDDEN: u32 = 65_536;
/// Largest top_k.
pub const MAX_TOP_K: u32 = 64;
/// Largest number of ranks in a group.
pub const MAX_RANKS: u32 = 8;
/// Most tokens of one launch.
pub const MAX_TOKENS: u64 = (i32::MAX / 8) as u64;
/// Most parameters and outputs of one pattern together.
pub const MAX_ARGS: usize = 32;

/// Most elements from row to row.
pub const MAX_ROW_STRIDE: u64 = 1 << 30;

/// Which optional parameters a variant has. Parameters that are not optional are always present.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Presence(u32);

impl Presence {
    /// Every parameter present.
    pub const ALL: Presence = Presence(u32::MAX);

    /// The same set without `param`.
    #[must_use]
    pub const fn without(self, param: ParamId) -> Presence {
        Presence(self.0 & !(1 << param.0))
    }

    /// Whether `param` is present.
    pub const fn has(self, param: ParamId) -> bool {
        self.0 >> param.0 & 1 == 1
    }

    /// The set without the parameters at which `absent` answers true.
    pub fn from_absent(absent: impl IntoIterator<Item = ParamId>) -> Presence {
        absent.into_iter().fold(Presence::ALL, Presence::without)
    }

    /// Every variant of `graph`: the product over its optional parameters, all present first.
    pub fn variants(graph: &Graph) -> Vec<Presence> {
        let mut all = vec![Presence::ALL];
        for (i, _) in graph.params.iter().enumerate().filter(|(_, p)| p.optional) {
            let without = all.iter().map(|v| v.without(ParamId(i as u32))).collect::<Vec<_>>();
            all.extend(without);
        }
        all
    }
}

impl std::fmt::Debug for Presence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Presence({:#x})", self.0)
    }
}

/// Elements from row to row of the arguments whose rows do not follow each other; by place in the bundle, which has the
/// parameters and then the outputs that are not in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Strides([u32; MAX_ARGS]);

impl Strides {
    /// The stride of argument `at`, unless it is dense.
    pub fn of(&self, at: usize) -> Option<u32> {
        self.0.get(at).copied().filter(|stride| *stride > 0)
    }
}

/// Everything a kernel is specialised for, but the architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dims {
    /// Channels of a token.
    pub hidden: u32,
    /// Experts per token; 0 when the pattern has no row map.
    pub top_k: u32,
    /// Ranks that exchange; 1 when the pattern has no collective.
    pub ranks: u32,
    /// The pattern's dtype.
    pub dtype: DType,
    /// What travels between ranks.
    pub wire: DType,
    /// Which optional parameters exist.
    pub present: Presence,
    /// Which arguments have rows that do not follow each other.
    pub strides: Strides,
}

/// Dims as the caller of `prepare` gives them; what is `None` must be fixed by the attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Channels of a token.
    pub hidden: Option<u32>,
    /// Experts per token.
    pub top_k: Option<u32>,
    /// The pattern's dtype.
    pub dtype: Option<DType>,
    /// The size of the group.
    pub ranks: u32,
}

/// Why dims could not be bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Neither the attribute nor the caller says it.
    #[error(
        "`{dim}` of `{pattern}` is not bound: fix it in the attribute (`{dim} = …`) or give it to `Prepare` (`.{dim}(…)`)"
    )]
    Unbound {
        /// The pattern.
        pattern: String,
        /// `hidden`, `top_k` or `dtype`.
        dim: &'static str,
    },
    /// The attribute says one thing, the caller another.
    #[error(
        "`{dim}` of `{pattern}` is fixed to {fixed} by its attribute, and `prepare` got {got}: leave it out of one of the two"
    )]
    Contradiction {
        /// The pattern.
        pattern: String,
        /// `hidden`, `top_k` or `dtype`.
        dim: &'static str,
        /// The attribute's.
        fixed: String,
        /// The caller's.
        got: String,
    },
    /// The attribute is for a group of another size.
    #[error(
        "`ranks` of `{pattern}` is fixed to {fixed} by its attribute, and the group has {got}: prepare it for a group of {fixed}, or leave `ranks` out of the attribute"
    )]
    Ranks {
        /// The pattern.
        pattern: String,
        /// The attribute's.
        fixed: u32,
        /// The group's.
        got: u32,
    },
    /// Out of what a kernel can be made for.
    #[error("`{dim}` of `{pattern}` is {got}, and must be in {min}..={max}")]
    OutOfRange {
        /// The pattern.
        pattern: String,
        /// Which dim.
        dim: &'static str,
        /// What came.
        got: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// Not a dtype of activations or of the wire.
    #[error("`{dim}` of `{pattern}` is {got}, and must be one of {expected}")]
    DType {
        /// The pattern.
        pattern: String,
        /// `dtype` or `wire`.
        dim: &'static str,
        /// What came.
        got: DType,
        /// What is supported.
        expected: &'static str,
    },
    /// A row stride for an argument that the pattern does not have.
    #[error("`{pattern}` has no argument `{got}` whose row stride could be given: it has {names}")]
    UnknownArgument {
        /// The pattern.
        pattern: String,
        /// The name that came.
        got: String,
        /// Its arguments.
        names: String,
    },
    /// A row stride for an argument that has one row, or one element a token.
    #[error(
        "`{argument}` of `{pattern}` is {shape} and has no row stride: leave it out, and pass it contiguous"
    )]
    NoRows {
        /// The pattern.
        pattern: String,
        /// The argument.
        argument: String,
        /// Its shape.
        shape: String,
    },
    /// Rows that would overlap, or lie too far apart.
    #[error(
        "the row stride of `{argument}` of `{pattern}` is {got} elements, and must be in {width}..={max}: rows of {shape} have {width}"
    )]
    RowStride {
        /// The pattern.
        pattern: String,
        /// The argument.
        argument: String,
        /// Its shape.
        shape: String,
        /// Elements of a row.
        width: u64,
        /// What came.
        got: u32,
        /// The most.
        max: u64,
    },
    /// More row sums at once than a block has shared memory for.
    #[error(
        "`{pattern}` needs {got} row sums at once, and shared memory holds {max} for hidden = {hidden}: split it in two patterns"
    )]
    RowSums {
        /// The pattern.
        pattern: String,
        /// Channels of a token.
        hidden: u32,
        /// Sums that end one phase.
        got: usize,
        /// The most.
        max: usize,
    },
    /// With this variant nothing would be left of an output or operand. Of a graph that
    /// [`check`](crate::check::check) has passed, there is always something left.
    #[error(
        "`{value}` of `{pattern}` has no value when every optional input of it is absent: prepare a variant in which one is present"
    )]
    AbsentValue {
        /// The pattern.
        pattern: String,
        /// The output or operand.
        value: String,
    },
}

impl Dims {
    /// Combines what the attribute of `graph` fixes with `request`.
    pub fn bind(graph: &Graph, request: &Request, present: Presence) -> Result<Dims, BindError> {
        let pattern = || graph.name.to_string();
        let one = |dim, fixed: Option<u32>, got: Option<u32>| match (fixed, got) {
            (Some(f), Some(g)) if f != g => Err(BindError::Contradiction {
                pattern: pattern(),
                dim,
                fixed: f.to_string(),
                got: g.to_string(),
            }),
            (f, g) => f.or(g).ok_or_else(|| BindError::Unbound { pattern: pattern(), dim }),
        };
        let range = |dim, got: u32, max: u32| match got {
            _ if (1..=max).contains(&got) => Ok(got),
            _ => Err(BindError::OutOfRange {
                pattern: pattern(),
                dim,
                got: got.into(),
                min: 1,
                max: max.into(),
            }),
        };
        let fixed = &graph.fixed;
        let hidden = range("hidden", one("hidden", fixed.hidden, request.hidden)?, MAX_HIDDEN)?;
        let top_k = match graph.has_top_k() {
            true => range("top_k", one("top_k", fixed.top_k, request.top_k)?, MAX_TOP_K)?,
            false => 0,
        };
        let dtype = match (fixed.dtype, request.dtype) {
            (Some(f), Some(g)) if f != g => {
                return Err(BindError::Contradiction {
                    pattern: pattern(),
                    dim: "dtype",
                    fixed: f.to_string(),
                    got: g.to_string(),
                });
            }
            (f, g) => f.or(g).ok_or_else(|| BindError::Unbound { pattern: pattern(), dim: "dtype" })?,
        };
        let wire = fixed.wire.unwrap_or(dtype);
        for (dim, got) in [("dtype", dtype), ("wire", wire)] {
            if !DType::FLOATS.contains(&got) {
                return Err(BindError::DType { pattern: pattern(), dim, got, expected: "bf16, f16, f32" });
            }
        }
        let ranks = range("ranks", request.ranks, MAX_RANKS)?;
        if let Some(fixed) = fixed.ranks.filter(|fixed| *fixed != ranks) {
            return Err(BindError::Ranks { pattern: pattern(), fixed, got: ranks });
        }
        Ok(Dims {
            hidden,
            top_k,
            ranks: if graph.has_collective() { ranks } else { 1 },
            dtype,
            wire,
            present,
            strides: Strides::default(),
        })
    }

    /// The same with `stride` elements from row to row of the argument that `name` names: a parameter of `graph`, or an
    /// output. The last row needs no more than its own elements.
    pub fn with_row_stride(mut self, graph: &Graph, name: &str, stride: u32) -> Result<Dims, BindError> {
        let outputs = graph.outputs.iter().filter(|o| o.in_place.is_none()).map(|o| (&o.name, o.role));
        let arguments: Vec<_> = graph.params.iter().map(|p| (&p.name, p.role)).chain(outputs).collect();
        let pattern = || graph.name.to_string();
        let Some(at) = arguments.iter().position(|(n, _)| *n == name) else {
            let names = arguments.iter().map(|(n, _)| format!("`{n}`")).collect::<Vec<_>>().join(", ");
            return Err(BindError::UnknownArgument { pattern: pattern(), got: name.to_owned(), names });
        };
        let ty = arguments[at].1.tensor();
        let (argument, shape) = (name.to_owned(), ty.shape());
        if !ty.has_rows() {
            return Err(BindError::NoRows { pattern: pattern(), argument, shape });
        }
        let width = ty.bind(&self, None).width;
        if u64::from(stride) < width || u64::from(stride) > MAX_ROW_STRIDE {
            let (got, max) = (stride, MAX_ROW_STRIDE);
            return Err(BindError::RowStride { pattern: pattern(), argument, shape, width, got, max });
        }
        self.strides.0[at] = if u64::from(stride) == width { 0 } else { stride };
        Ok(self)
    }
}
