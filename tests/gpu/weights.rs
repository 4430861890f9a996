//! Expert weights of two bytes, whose rows of K begin at any even address.

use super::patterns::{Weighted, WeightedBf16, WeightedF16};
use super::support::{Fixture, gpu};
use seamline::prelude::*;
use seamline_codegen::Presence;
use seamline_codegen::workload::{Kind, Workload};

#[test]
fn expert_weights_of_two_bytes() {
    let Some(gpu) = gpu() else { return };
    let weights = [
        (Weighted::GRAPH, DType::Bf16),
        (Weighted::GRAPH, DType::F16),
        (WeightedBf16::GRAPH, DType::F16),
        (WeightedBf16::GRAPH, DType::F32),
        (WeightedF16::GRAPH, DType::Bf16),
    ];
    for (graph, dtype) in weights {
        for top_k in [1, 3, 8, 11] {
            for ranks in [1, 2, 8] {
                let options = Prepare::new(7).variants(&[&[]]);
                let fixture = Fixture::with_dtype(&gpu, graph, ranks, (1024, top_k, dtype), &options);
                let program = fixture.program(Presence::ALL);
                for (tokens, kind) in [(1, Kind::Ordinary), (7, Kind::Ordinary), (7, Kind::NanBehindDropped)]
                {
                    let workload = Workload::new(&program, tokens, top_k.into(), kind);
                    let what = format!("{}, {:?}, {kind:?}, T={tokens}", graph.name, program.dims);
                    fixture.run(&what, &program, &workload);
                }
            }
        }
    }
}
