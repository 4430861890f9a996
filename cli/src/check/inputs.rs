//! Which inputs a check has.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use seamline::testing::Kind;
use seamline_codegen::Graph;

/// What `--inputs` calls the kinds.
const NAMES: [(&str, Kind); 13] = [
    ("ordinary", Kind::Ordinary),
    ("engine", Kind::KIMI_K2),
    ("engine-expert-parallel", Kind::KIMI_K2_EXPERT_PARALLEL),
    ("negative-zeros", Kind::NegativeZeros),
    ("subnormals", Kind::Subnormals),
    ("inf-and-nan", Kind::InfAndNan),
    ("nan-behind-dropped", Kind::NanBehindDropped),
    ("all-dropped", Kind::AllDropped),
    ("out-of-range", Kind::OutOfRange),
    ("cancelling", Kind::Cancelling),
    ("no-rows", Kind::NoRows),
    ("integers", Kind::Integers),
    ("overflow", Kind::Overflow),
];

/// What is left of the kinds where a case is large.
pub const OF_LARGE: [Kind; 3] = [Kind::Ordinary, Kind::KIMI_K2, Kind::InfAndNan];

/// Elements of a case that the simulator takes seconds for.
pub const LARGE: u64 = 1 << 24;

/// Reads the name of a kind.
pub fn parser() -> impl TypedValueParser<Value = Kind> {
    let kind = |name: String| {
        NAMES.iter().find(|(known, _)| *known == name).map_or(Kind::Ordinary, |(_, kind)| *kind)
    };
    PossibleValuesParser::new(NAMES.map(|(name, _)| name)).map(kind)
}

/// Every kind that a check has unless told otherwise.
pub fn all() -> Vec<Kind> {
    [&[Kind::Ordinary, Kind::KIMI_K2][..], &Kind::HOSTILE].concat()
}

/// Elements that a case reads: of each token on each rank, its experts' rows and one more.
pub fn elements(graph: &Graph, ranks: u32, tokens: usize, hidden: u32, top_k: u32) -> u64 {
    let ranks = if graph.has_collective() { u64::from(ranks) } else { 1 };
    ranks * tokens as u64 * u64::from(hidden) * u64::from(top_k + 1)
}

/// Whether what these inputs give is far from f64 however well it is rounded: they are made of values whose roundings are as
/// large as they are, or of sums that are far smaller than their terms.
pub fn is_inexact(kind: Kind) -> bool {
    matches!(kind, Kind::NegativeZeros | Kind::Subnormals | Kind::Cancelling | Kind::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name() {
        for kind in all() {
            assert!(NAMES.iter().any(|(_, named)| *named == kind), "{kind}");
        }
    }
}
