//! What generated code asks of the crate that it is in: nothing. Lints that cannot be lowered, a module without a prelude,
//! types of one's own, and patterns that macros write.

#![forbid(unused, nonstandard_style, unsafe_code)]
#![deny(missing_docs, unreachable_pub, single_use_lifetimes, unused_qualifications, unused_results)]
#![deny(clippy::all, clippy::pedantic, clippy::arithmetic_side_effects, clippy::float_arithmetic)]
#![deny(warnings, forbidden_lint_groups, unfulfilled_lint_expectations)]

use seamline::Graph;
use seamline::prelude::*;

/// More parameters than clippy likes, of one suffix, and a number that it would group.
#[fused_pattern(hidden = 64)]
fn many(
    a_in: Tokens,
    b_in: Tokens,
    c_in: Tokens,
    d_in: Tokens,
    e_in: Tokens,
    f_in: Tokens,
    g_in: Tokens,
    h_in: Tokens,
) -> Tokens {
    let y_in = a_in * b_in + c_in * d_in + e_in * f_in + g_in * h_in * 1.000000119;
    y_in
}

mod without_prelude {
    #![no_implicit_prelude]

    /// A seam.
    #[::seamline::fused_pattern]
    pub(super) fn seam(
        x: ::seamline::dsl::Tokens,
        bias: ::core::option::Option<::seamline::dsl::Channels>,
        scale: ::seamline::dsl::Scalar,
    ) -> ::seamline::dsl::Tokens {
        let y = x * scale + bias;
        y
    }
}

mod own_names {
    use ::seamline::prelude::{Channels, Scalar, Tokens, fused_pattern};

    /// Names that generated code uses too, for something else.
    macro_rules! own {
        ($($name:ident)*) => {
            $(pub(super) struct $name;)*
            pub(super) const NAMES: &[&str] = &[$({ let _ = $name; stringify!($name) }),*];
        };
    }
    own! { Option Some None Result Vec Args Input Output Arg ArgList Graph Node Op Param Role Cow DType Debug Clone Copy }

    /// Traits and modules too.
    pub(super) trait Pattern {
        const PARAMS: usize;
    }
    impl Pattern for Option {
        const PARAMS: usize = 3;
    }
    pub(super) mod core {}
    pub(super) mod std {}
    pub(super) mod seamline {}

    /// A seam.
    #[fused_pattern]
    pub(super) fn seam(x: Tokens, bias: ::core::option::Option<Channels>, scale: Scalar) -> Tokens {
        let y = x * scale + bias;
        y
    }
}

mod expected {
    use seamline::prelude::{Tokens, fused_pattern};

    /// One lint that the names give, and one that nothing gives.
    #[fused_pattern]
    #[expect(clippy::many_single_char_names, reason = "as in the paper")]
    pub(super) fn seam(a: Tokens, b: Tokens, c: Tokens, d: Tokens) -> Tokens {
        let e = a * b + c * d;
        e
    }
}

/// Every kind of fragment, wherever a pattern takes one.
macro_rules! pattern {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($x:ident: $ty:ty, $w:ident), $hidden:literal, $dtype:ident, $top:expr, $elem:ty, $krate:path, $call:path, $factor:literal, $sum:expr) => {
        $(#[$meta])*
        #[fused_pattern(hidden = $hidden, dtype = $dtype, top_k = $top, crate = $krate)]
        $vis fn $name($x: $ty, $w: Channels<$elem>, rows: Permuted, map: RowMap, weights: ExpertWeights) -> $ty {
            let local = finalize(rows, map, weights) + $sum;
            let y = $call(local * $factor, $w, 1e-6);
            y
        }
    };
}

pattern! {
    /// Written by a macro.
    #[allow(unreachable_pub)]
    pub(crate) fn of_fragments(x: Tokens, w), 64, bf16, 8, f32, ::seamline, rms_norm, -0.5, x + x * 2
}

/// The same, without one.
#[fused_pattern(hidden = 64, dtype = bf16, top_k = 8)]
fn of_fragments_by_hand(
    x: Tokens,
    w: Channels<f32>,
    rows: Permuted,
    map: RowMap,
    weights: ExpertWeights,
) -> Tokens {
    let local = finalize(rows, map, weights) + (x + x * 2);
    let y = rms_norm(local * -0.5, w, 1e-6);
    y
}

macro_rules! body {
    ($name:ident($x:ident) $body:block) => {
        #[fused_pattern]
        fn $name($x: Tokens) -> Tokens $body
    };
    ($item:item) => {
        #[fused_pattern]
        $item
    };
}
body!(of_a_block(x) { let y = -x; y });
body! {
    fn of_an_item(x: Tokens) -> Tokens {
        let y = -x;
        y
    }
}

/// A graph but for its name.
fn unnamed(graph: &Graph) -> Graph {
    Graph { name: "".into(), ..graph.clone() }
}

#[test]
fn what_macros_write_is_what_is_written_by_hand() {
    assert_eq!(unnamed(OfFragments::GRAPH), unnamed(OfFragmentsByHand::GRAPH));
    assert_eq!(unnamed(OfABlock::GRAPH), unnamed(OfAnItem::GRAPH));
    assert_eq!(OfABlock::GRAPH.nodes.len(), 2);
}

#[test]
fn names_of_the_crate_change_nothing() {
    use own_names::Pattern as _;
    assert_eq!(own_names::Seam::GRAPH, without_prelude::Seam::GRAPH);
    assert_eq!(own_names::Seam::GRAPH.params.len(), own_names::Option::PARAMS);
    assert!(own_names::NAMES.contains(&"Graph"));
    assert_eq!((Many::GRAPH.params.len(), expected::Seam::GRAPH.params.len()), (8, 4));
}
