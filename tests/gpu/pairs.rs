//! Where the other tests vary little: hidden sizes, dtypes, ranks, experts, tokens, weights and variants, pairwise.

use super::covering::pairwise;
use super::patterns::{Weighted, WeightedBf16, WeightedF16, WeightedF32};
use super::support::{Fixture, gpu, without};
use seamline::prelude::*;
use seamline::{Graph, Schedule};
use seamline_codegen::workload::{Kind, Workload};

const HIDDEN: [u32; 6] = [1024, 2048, 2688, 4096, 6144, 8192];
const RANKS: [u32; 4] = [1, 2, 4, 8];
const TOP_K: [u32; 7] = [1, 3, 6, 8, 10, 16, 22];
const TOKENS: [usize; 6] = [0, 1, 2, 8, 17, 33];
/// What the expert weights are; `None`: there are none.
const WEIGHTS: [Option<&Graph>; 5] = [
    None,
    Some(WeightedF32::GRAPH),
    Some(Weighted::GRAPH),
    Some(WeightedBf16::GRAPH),
    Some(WeightedF16::GRAPH),
];
const KINDS: [Kind; 4] = [Kind::Ordinary, Kind::InfAndNan, Kind::NanBehindDropped, Kind::Cancelling];
/// The cases, so that a factor cannot shrink unseen.
const CASES: usize = 42;

/// What is launched once.
#[derive(Debug)]
struct Case {
    hidden: u32,
    dtype: DType,
    ranks: u32,
    top_k: u32,
    tokens: usize,
    weights: Option<&'static Graph>,
    shared: bool,
    residual: bool,
    kind: Kind,
}

fn cases() -> Vec<Case> {
    let levels = [
        HIDDEN.len(),
        TOP_K.len(),
        TOKENS.len(),
        WEIGHTS.len(),
        RANKS.len(),
        KINDS.len(),
        DType::FLOATS.len(),
        2,
        2,
    ];
    let case = |row: Vec<usize>| Case {
        hidden: HIDDEN[row[0]],
        top_k: TOP_K[row[1]],
        tokens: TOKENS[row[2]],
        weights: WEIGHTS[row[3]],
        ranks: RANKS[row[4]],
        kind: KINDS[row[5]],
        dtype: DType::FLOATS[row[6]],
        shared: row[7] == 1,
        residual: row[8] == 1,
    };
    pairwise(&levels).into_iter().map(case).collect()
}

#[test]
fn every_pair_of_factors() {
    let cases = cases();
    assert_eq!(cases.len(), CASES);
    let Some(gpu) = gpu() else { return };
    for case in &cases {
        let graph = case.weights.unwrap_or(Weighted::GRAPH);
        let optional =
            [("weights", case.weights.is_some()), ("shared", case.shared), ("residual_in", case.residual)];
        let absent = || (2..).zip(optional).filter(|(_, (_, present))| !present);
        let names: Vec<&str> = absent().map(|(_, (name, _))| name).collect();
        let present = without(&absent().map(|(param, _)| param).collect::<Vec<_>>());
        // One row more than is launched: it must stay unwritten, and with T = 0 it is all there is.
        let rows = case.tokens + 1;
        let taken = Prepare::new(rows).variants(&[&names]);
        let owner = (case.ranks > 1).then(|| taken.clone().schedule(Schedule::Owner));
        for options in [Some(taken), owner].into_iter().flatten() {
            let shape = (case.hidden, case.top_k, case.dtype);
            let fixture = Fixture::with_dtype(&gpu, graph, case.ranks, shape, &options);
            let program = fixture.program(present);
            let workload = Workload::new(&program, rows, case.hidden.into(), case.kind);
            let memory = fixture.memory(&program, &workload);
            let what = format!("{case:?}, {options:?}");
            fixture.launch(&program, &memory, case.tokens).unwrap_or_else(|e| panic!("{what}: {e}"));
            fixture.compare(&what, &program, &fixture.expected(&program, &workload), case.tokens, &memory);
        }
    }
    println!("{} cases are bit-equal to the reference", cases.len());
}
