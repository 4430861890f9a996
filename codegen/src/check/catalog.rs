//! Enums whose variants can be listed.

/// Declares an enum and the names of its variants, so that a test can ask for an example of each. What no source
/// text can give stands apart, after `beyond source`.
macro_rules! catalog {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident $({ $($fields:tt)* })?,)*
        }
        $(beyond source {
            $($(#[$beyond_meta:meta])* $beyond:ident { $($beyond_fields:tt)* },)*
        })?
    ) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$variant_meta])* $variant $({ $($fields)* })?,)*
            $($($(#[$beyond_meta])* $beyond { $($beyond_fields)* },)*)?
        }

        impl $name {
            /// The names of all variants that source text can give.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($variant)),*];

            /// The name of this variant.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => stringify!($variant),)*
                    $($(Self::$beyond { .. } => stringify!($beyond),)*)?
                }
            }
        }
    };
}
pub(crate) use catalog;
