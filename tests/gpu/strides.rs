//! Rows with gaps between them.

use super::support::gpu;
use seamline::patterns::{ArResidualRmsnormInPlace, MoeFinalizeArResidualRmsnorm};
use seamline::prelude::*;
use seamline::testing::Check;

#[test]
fn rows_with_gaps_between_them_are_exact() {
    let Some(gpu) = gpu() else { return };
    let moe = Prepare::new(9)
        .hidden(2880)
        .top_k(4)
        .dtype(DType::Bf16)
        .row_stride("gemm2_out", 3072)
        .row_stride("residual_in", 2884)
        .row_stride("norm_out", 5760)
        .row_stride("expanded_idx_to_permuted_idx", 5);
    let in_place = Prepare::new(9).hidden(1000).dtype(DType::F16).row_stride("residual", 2001);
    for (graph, options) in
        [(MoeFinalizeArResidualRmsnorm::GRAPH, moe), (ArResidualRmsnormInPlace::GRAPH, in_place)]
    {
        let context = gpu.context.clone();
        let check = Check::new(graph, &options)
            .ranks(&[1, 2, 4])
            .tokens(&[1, 3, 9])
            .executor("cuda", move |ranks| Group::loopback(&context, ranks));
        println!("{}", check.run(|_| ()).unwrap().into_result().unwrap());
    }
}
