//! Enums whose variants can be listed.

/// Declares an enum and the names of its variants, so that a test can ask for an example of each.
macro_rules! catalog {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident $({ $($fields:tt)* })?,)*
        }
    ) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$variant_meta])* $variant $({ $($fields)* })?,)*
        }

        impl $name {
            /// The names of all variants.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($variant)),*];

            /// The name of this variant.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => stringify!($variant),)*
                }
            }
        }
    };
}
pub(crate) use catalog;
