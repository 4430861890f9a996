//! Generated kernels, run by the simulator, store the bits of the reference.

#[path = "support/group.rs"]
mod group;

use group::{Group, program};
use seamline_codegen::Presence;
use seamline_codegen::reference;
use seamline_codegen::workload::{Kind, Workload};
use seamline_sim::{Options, Order};
use std::time::Instant;

const K25: &str = "
#[fused_pattern(dtype = bf16)]
pub fn moe_finalize_ar_residual_rmsnorm(
    gemm2_out: Permuted,
    expanded_idx_to_permuted_idx: RowMap,
    expert_scale_factor: ExpertWeights<f32>,
    shared_expert_output: Option<Tokens>,
    residual_in: Tokens,
    rms_gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    let local = finalize(gemm2_out, expanded_idx_to_permuted_idx, expert_scale_factor) + shared_expert_output;
    let residual_out = all_reduce(local) + residual_in;
    let norm_out = rms_norm(residual_out, rms_gamma, eps);
    (residual_out, norm_out)
}";

fn check(hidden: u32, top_k: u32, ranks: u32, tokens: usize, kind: Kind, order: Order) {
    let program = program(K25, hidden, top_k, ranks, Presence::ALL);
    let start = Instant::now();
    let mut group = Group::new(program, tokens.max(1) as u64);
    let built = start.elapsed();
    let workload = Workload::new(&group.program, tokens, 1, kind);
    let expected = reference::run(&group.program, &workload.inputs(), tokens).unwrap();
    let mut calls = [group.call(&workload)];
    let start = Instant::now();
    let report = group.run(&mut calls, &Options::new(order)).unwrap_or_else(|e| panic!("{e}"));
    println!("H={hidden} K={top_k} N={ranks} T={tokens}: built {built:?}, ran {:?}, {report:?}", start.elapsed());
    if let Some(difference) = calls[0].difference(&group.program, &expected) {
        panic!("H={hidden} K={top_k} N={ranks} T={tokens} {kind:?} {order}: {difference}");
    }
}

#[test]
fn eight_ranks_of_kimi() {
    check(7168, 8, 8, 8, Kind::KIMI_K2, Order::Forward);
}

#[test]
fn one_rank_of_kimi() {
    check(7168, 8, 1, 8, Kind::KIMI_K2, Order::Forward);
}
