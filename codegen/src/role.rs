//! What a parameter or a result is: the types of the language, one match each.

use crate::DType;
use crate::graph::Elem;
use crate::tensor::{Access, Dim, TensorType};

/// What a parameter or a result is: it decides shape, dtype and when the kernel may read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// `Tokens`: `[T, H]`.
    Tokens(Elem),
    /// `Permuted`: `[P, H]`, rows grouped by expert.
    Permuted(Elem),
    /// `RowMap`: `[T, K]` i32; -1 where this rank does not hold the row.
    RowMap,
    /// `ExpertWeights`: `[T, K]`.
    ExpertWeights(Elem),
    /// `Channels`: `[H]`, constant weights; the only inputs read before the PDL wait.
    Channels(Elem),
    /// `PerToken`: `[T]`.
    PerToken(Elem),
    /// `Scalar`: one f32, passed by value.
    Scalar,
    /// `Quantized`: `[T, H]`, what a quantiser gives beside its scales.
    Quantized(Elem),
}

impl Role {
    /// One of each, of the pattern's dtype where it has one.
    pub const ALL: &'static [Role] = &[
        Role::Tokens(Elem::Pattern),
        Role::Permuted(Elem::Pattern),
        Role::RowMap,
        Role::ExpertWeights(Elem::Pattern),
        Role::Channels(Elem::Pattern),
        Role::PerToken(Elem::Pattern),
        Role::Scalar,
        Role::Quantized(Elem::Fixed(DType::E4m3)),
    ];

    /// The type's name in a signature, which is the variant's.
    pub const fn type_name(self) -> &'static str {
        match self {
            Role::Tokens(_) => "Tokens",
            Role::Permuted(_) => "Permuted",
            Role::RowMap => "RowMap",
            Role::ExpertWeights(_) => "ExpertWeights",
            Role::Channels(_) => "Channels",
            Role::PerToken(_) => "PerToken",
            Role::Scalar => "Scalar",
            Role::Quantized(_) => "Quantized",
        }
    }

    /// The role whose type is called `name`.
    pub fn from_name(name: &str) -> Option<Role> {
        Role::ALL.iter().copied().find(|role| role.type_name() == name)
    }

    /// The dtype argument that the type has, as in `Tokens<f32>`; `None` for one that takes none.
    pub const fn argument(self) -> Option<Elem> {
        match self {
            Role::Tokens(e)
            | Role::Permuted(e)
            | Role::ExpertWeights(e)
            | Role::Channels(e)
            | Role::PerToken(e)
            | Role::Quantized(e) => Some(e),
            Role::RowMap | Role::Scalar => None,
        }
    }

    /// The same type with `elem` for its argument, if it takes one.
    #[must_use]
    pub const fn with(self, elem: Elem) -> Role {
        match self {
            Role::Tokens(_) => Role::Tokens(elem),
            Role::Permuted(_) => Role::Permuted(elem),
            Role::ExpertWeights(_) => Role::ExpertWeights(elem),
            Role::Channels(_) => Role::Channels(elem),
            Role::PerToken(_) => Role::PerToken(elem),
            Role::Quantized(_) => Role::Quantized(elem),
            Role::RowMap | Role::Scalar => self,
        }
    }

    /// What it is in memory.
    pub const fn tensor(self) -> TensorType {
        let (dims, access): (&'static [Dim], Access) = match self {
            Role::Tokens(_) | Role::Quantized(_) => (&[Dim::Tokens, Dim::Hidden], Access::Activations),
            Role::Permuted(_) => (&[Dim::Rows, Dim::Hidden], Access::Activations),
            Role::RowMap | Role::ExpertWeights(_) => (&[Dim::Tokens, Dim::TopK], Access::Activations),
            Role::Channels(_) => (&[Dim::Hidden], Access::Weights),
            Role::PerToken(_) => (&[Dim::Tokens], Access::Activations),
            Role::Scalar => (&[], Access::Value),
        };
        let elem = match (self.argument(), self) {
            (Some(elem), _) => elem,
            (None, Role::RowMap) => Elem::Fixed(DType::I32),
            (None, _) => Elem::Fixed(DType::F32),
        };
        TensorType { dims, elem, access }
    }

    /// Whether a parameter can be one.
    pub const fn is_parameter(self) -> bool {
        !matches!(self, Role::Quantized(_))
    }

    /// Whether a pattern can return one.
    pub const fn is_result(self) -> bool {
        matches!(self, Role::Tokens(_) | Role::PerToken(_) | Role::Quantized(_))
    }

    /// The dtypes that its argument can be.
    pub const fn dtypes(self) -> &'static [DType] {
        match self {
            Role::Quantized(_) => &[DType::E4m3],
            _ => &DType::FLOATS,
        }
    }

    /// The type as one writes it: `Tokens<f32>`.
    pub fn text(self) -> String {
        match self.argument() {
            Some(Elem::Fixed(dtype)) => format!("{}<{dtype}>", self.type_name()),
            _ => self.type_name().to_owned(),
        }
    }

    /// What more its docs say of a parameter of this type; a sentence, or nothing.
    pub const fn note(self) -> &'static str {
        match self {
            Role::Permuted(_) => "Rows grouped by expert. P is the rows that there are.",
            Role::RowMap => {
                "For each token and expert the row that has its product; -1, or anything outside `0..P`, where this rank holds none."
            }
            Role::ExpertWeights(_) => "The router's weight of each token's experts.",
            Role::Channels(_) => {
                "Constant: read before the kernel in front has finished, so never what that one writes."
            }
            Role::Tokens(_) | Role::PerToken(_) | Role::Scalar | Role::Quantized(_) => "",
        }
    }

    /// What an absent `Option` of it means.
    pub const fn absent(self) -> &'static str {
        match self {
            Role::ExpertWeights(_) => "every weight is 1",
            _ => "nothing is added",
        }
    }

    /// What to write instead of an `Option` of it, if that is not supported.
    pub(crate) const fn never_optional(self) -> Option<&'static str> {
        match self {
            Role::Tokens(_)
            | Role::Channels(_)
            | Role::PerToken(_)
            | Role::ExpertWeights(_)
            | Role::Quantized(_) => None,
            Role::Permuted(_) => Some("there is nothing to sum without rows; take it as `Permuted`"),
            Role::RowMap => Some("no rows are found without a map; take it as `RowMap`"),
            Role::Scalar => Some("take it as `Scalar` and pass the value that changes nothing, 0.0 or 1.0"),
        }
    }
}
