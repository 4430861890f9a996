//! Random patterns store the bits of the reference. The simulator tries more of them, in sim/tests/fuzz.

#[path = "../../sim/tests/fuzz/body.rs"]
mod body;

use super::support::gpu;
use fastrand::Rng;
use seamline::prelude::*;
use seamline::testing::Check;
use seamline_codegen::Graph;
use seamline_codegen::parse::parse_file;
use std::fmt::Display;

/// A lane or two a thread, and no whole lane; and which patterns. Each takes seconds: all its variants are compiled, for every number
/// of ranks and of tokens.
const CASES: [(u32, std::ops::Range<u64>); 3] = [(1032, 0..4), (7168, 4..8), (20, 8..12)];

#[test]
fn random_patterns() {
    let Some(gpu) = gpu() else { return };
    let mut cases = 0;
    for (hidden, seeds) in CASES {
        for seed in seeds {
            let source = body::pattern(Rng::with_seed(seed));
            let wrong = |e: &dyn Display| -> ! { panic!("seed {seed}, H={hidden}: {e}\n{source}") };
            // A kernel's pattern lives as long as the process.
            let graphs = parse_file(&source).unwrap_or_else(|e| wrong(&e)).leak();
            let context = gpu.context.clone();
            let check = Check::new(&graphs[0], &options(&graphs[0], hidden))
                .ranks(&[1, 2, 8])
                .tokens(&[1, 40])
                .executor("cuda", move |ranks| Group::loopback(&context, ranks));
            let report = check.run(|_| ()).unwrap_or_else(|e| wrong(&e));
            let report = report.into_result().unwrap_or_else(|e| wrong(&e));
            assert_eq!(report.cases.len(), check.cases().unwrap());
            cases += report.cases.len();
        }
    }
    println!("{cases} cases of random patterns are bit-equal to the reference");
    assert_eq!(cases, 692);
}

fn options(graph: &Graph, hidden: u32) -> Prepare {
    let options = Prepare::new(40).hidden(hidden).top_k(7);
    match graph.fixed.dtype {
        Some(_) => options,
        None => options.dtype(DType::Bf16),
    }
}
