//! Type and bundle are as visible as the fn.

use seamline::prelude::*;

pub mod inner {
    use seamline::prelude::*;

    #[fused_pattern]
    pub(crate) fn of_the_crate(x: Tokens) -> Tokens {
        let y = -x;
        y
    }

    #[fused_pattern]
    pub(super) fn of_the_parent(x: Tokens) -> Tokens {
        let y = x + x;
        y
    }

    #[fused_pattern]
    pub(in crate::pass) fn of_a_path(x: Tokens) -> Tokens {
        let y = x - x;
        y
    }
}

#[fused_pattern]
fn private(x: Tokens) -> Tokens {
    let y = x * x;
    y
}

/// The graphs, for those who cannot see all of the types.
pub const GRAPHS: [&seamline::Graph; 4] =
    [inner::OfTheCrate::GRAPH, inner::OfTheParent::GRAPH, inner::OfAPath::GRAPH, Private::GRAPH];

/// The fields are as visible as the bundle.
pub fn tokens_of_the_parent<'a>(x: &'a [f32], y: &'a mut [f32]) -> usize {
    inner::OfTheParentArgs { tokens: 3, x: x.into(), y: y.into() }.tokens()
}
