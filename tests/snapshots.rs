//! What is generated for bodies that people use: one plain `.cu` each under `tests/snapshots`.
//!
//! The hand-written templates in front of it are not repeated there. After a change that is meant:
//! `INSTA_UPDATE=always cargo test --test snapshots`, or `cargo insta review`.

use seamline::patterns::*;
use seamline::prelude::*;
use seamline_codegen::emit::{Target, emit};
use seamline_codegen::schedule::{DeviceModel, Planner, Schedule};
use seamline_codegen::{Dims, Graph, ParamId, Presence, Request};

/// A wire of f32: nothing is rounded between the ranks.
#[fused_pattern(wire = f32)]
fn f32_wire(allreduce_in: Tokens, residual_in: Tokens) -> Tokens {
    let residual_out = all_reduce(allreduce_in) + residual_in;
    residual_out
}

/// A norm in front of the exchange, which every rank takes of its own row.
#[fused_pattern]
fn norm_before_all_reduce(
    x: Tokens,
    post_gamma: Channels,
    residual_in: Tokens,
    pre_gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    let residual_out = all_reduce(rms_norm(x, post_gamma, eps)) + residual_in;
    let norm_out = rms_norm(residual_out, pre_gamma, eps);
    (residual_out, norm_out)
}

/// Every shape of value: per token, per channel, one, and literals.
#[fused_pattern]
fn arithmetic(x: Tokens, gate: PerToken<f32>, bias: Channels, scale: Scalar) -> Tokens<f32> {
    let out = 0.5 * (x * gate - bias) * -scale;
    out
}

/// The generated part for `graph`, with the entries that up to `max_tokens` tokens take on an H200.
fn generated(
    graph: &Graph,
    request: Request,
    present: Presence,
    schedule: Option<Schedule>,
    max_tokens: u64,
) -> String {
    let dims = Dims::bind(graph, &request, present).unwrap();
    let program = graph.bind(&dims).unwrap();
    let planner = Planner::new(&program, DeviceModel::H200, 1, false);
    let geometries = planner.with_schedules(schedule.map(|s| (1, s))).geometries(max_tokens);
    emit(&program, &Target { geometries, early_trigger: false, one_grid: false }).generated
}

fn dims(hidden: u32, top_k: u32, ranks: u32) -> Request {
    Request { hidden: Some(hidden), top_k: Some(top_k), dtype: Some(DType::Bf16), ranks }
}

/// `snapshots!(test: pattern, request[, without parameter][, by schedule])`: one test each.
macro_rules! snapshots {
    ($($test:ident: $pattern:ident, $request:expr $(, without $absent:literal)? $(, by $schedule:ident)?;)*) => {$(
        #[test]
        fn $test() {
            let graph = $pattern::GRAPH;
            let absent: &[&str] = &[$($absent)?];
            let ids = absent.iter().map(|name| {
                let at = graph.params.iter().position(|p| p.name == *name).unwrap();
                ParamId(at as u32)
            });
            let schedule: &[Schedule] = &[$(Schedule::$schedule)?];
            let text = generated(graph, $request, Presence::from_absent(ids), schedule.first().copied(), 128);
            insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
                insta::assert_binary_snapshot!(concat!(stringify!($test), ".cu"), text.into_bytes());
            });
        }
    )*};
}

snapshots! {
    kimi_k2_5_of_8_ranks: MoeFinalizeArResidualRmsnorm, dims(7168, 8, 8);
    kimi_k2_5_of_8_ranks_without_shared:
        MoeFinalizeArResidualRmsnorm, dims(7168, 8, 8), without "shared_expert_output";
    kimi_k2_5_of_8_ranks_by_owner: MoeFinalizeArResidualRmsnorm, dims(7168, 8, 8), by Owner;
    kimi_k2_5_alone: MoeFinalizeArResidualRmsnorm, dims(7168, 8, 1);
    qwen3_next_of_4_ranks: MoeFinalizeArResidualGemmaRmsnorm, dims(2048, 10, 4);
    gpt_oss_of_4_ranks: MoeFinalizeArResidualRmsnormF32Gamma, dims(2880, 4, 4);
    moe_without_norm_of_8_ranks: MoeFinalizeAr, dims(7168, 8, 8);
    llama_70b_of_8_ranks: ArResidualRmsnorm, dims(8192, 1, 8);
    llama_8b_of_2_ranks_in_place: ArResidualRmsnormInPlace, dims(4096, 1, 2);
    gemma_3_12b_of_2_ranks: ArSandwichGemmaRmsnorm, dims(3840, 1, 2);
    granite_of_2_ranks: ArScaledResidualRmsnorm, dims(1536, 1, 2);
    llama_8b_alone: ResidualRmsnorm, dims(4096, 1, 1);
    f32_wire_of_2_ranks: F32Wire, dims(4096, 1, 2);
    norm_before_all_reduce_of_4_ranks: NormBeforeAllReduce, dims(4096, 1, 4);
    ragged_hidden: Arithmetic, dims(1001, 1, 1);
}
