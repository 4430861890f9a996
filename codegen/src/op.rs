//! The operations that a body calls by name, a file each: its types, its lowering, and the one list of them all.
//!
//! Whoever parses, checks, lowers or prints a call reads its [`Spec`]; nothing else knows an operation by name. What it
//! means to a user is documented at its fn in seamline's `dsl`.

mod spec;

pub use spec::{OperandKind, OperandSpec, ResultSpec, Spec};

/// Declares the operations: a variant and the file with its `SPEC`.
macro_rules! operations {
    ($($variant:ident in $file:ident,)*) => {
        $(mod $file;)*

        /// An operation that is called by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Operation {
            $($variant,)*
        }

        impl Operation {
            /// Every operation, by name.
            pub const ALL: &'static [Operation] = &[$(Operation::$variant,)*];

            /// What it takes, what it gives, and how it is lowered.
            pub const fn spec(self) -> &'static Spec {
                match self {
                    $(Operation::$variant => &$file::SPEC,)*
                }
            }

            /// The variant's name: what a graph as a Rust constant is written with.
            pub const fn variant(self) -> &'static str {
                match self {
                    $(Operation::$variant => stringify!($variant),)*
                }
            }
        }
    };
}

operations! {
    AllReduce in all_reduce,
    Finalize in finalize,
    LayerNorm in layer_norm,
    QuantFp8PerToken in quant_fp8_per_token,
    RmsNorm in rms_norm,
}

impl Operation {
    /// The operation that `name` names.
    pub fn from_name(name: &str) -> Option<Operation> {
        Operation::ALL.iter().copied().find(|o| o.name() == name)
    }

    /// The function's name.
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// How it is called: `rms_norm(x, w, eps)`.
    pub fn usage(self) -> String {
        let names = self.spec().operands.iter().map(|o| o.name).collect::<Vec<_>>();
        format!("{}({})", self.name(), names.join(", "))
    }

    /// How the operations for which `which` holds are called: `` `a(x)` or `b(x)` ``.
    pub(crate) fn usages(which: impl Fn(&Spec) -> bool) -> String {
        let all = Operation::ALL.iter().filter(|o| which(o.spec()));
        all.map(|o| format!("`{}`", o.usage())).collect::<Vec<_>>().join(" or ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::MAX_OPERANDS;

    #[test]
    fn the_list_is_sorted_and_every_call_fits_a_node() {
        assert!(Operation::ALL.is_sorted_by(|a, b| a.name() < b.name()));
        for operation in Operation::ALL {
            assert!(operation.spec().operands.len() <= MAX_OPERANDS, "{operation:?}");
            assert!(!operation.spec().results.is_empty(), "{operation:?}");
            assert_eq!(Operation::from_name(operation.name()), Some(*operation));
        }
    }
}
