//! Quantised outputs, and norms in two passes.

use super::support::gpu;
use seamline::prelude::*;
use seamline::testing::Check;

/// Per-token FP8 behind a norm.
#[fused_pattern]
pub fn norm_fp8(
    allreduce_in: Tokens,
    residual_in: Tokens,
    gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens, Quantized<e4m3>, PerToken<f32>) {
    let residual_out = all_reduce(allreduce_in) + residual_in;
    let norm_out = rms_norm(residual_out, gamma, eps);
    let (quant_out, scale_out) = quant_fp8_per_token(norm_out);
    (residual_out, norm_out, quant_out, scale_out)
}

/// Quantised before the exchange, where a launch that fails must store NaN itself.
#[fused_pattern]
pub fn fp8_before(x: Tokens) -> (Quantized<e4m3>, PerToken<bf16>, Tokens) {
    let (quant_out, scale_out) = quant_fp8_per_token(x);
    let sum_out = all_reduce(x) * scale_out;
    (quant_out, scale_out, sum_out)
}

/// A layer norm of the sum.
#[fused_pattern]
pub fn layer_normed(x: Tokens, w: Channels, b: Channels<f32>, eps: Scalar) -> Tokens {
    let norm_out = layer_norm(all_reduce(x), w, b, eps);
    norm_out
}

#[test]
fn quantised_outputs_and_layer_norms_are_exact() {
    let Some(gpu) = gpu() else { return };
    for graph in [NormFp8::GRAPH, Fp8Before::GRAPH, LayerNormed::GRAPH] {
        for (hidden, dtype) in
            [(7168, DType::Bf16), (2880, DType::F16), (1001, DType::Bf16), (36, DType::F32)]
        {
            let context = gpu.context.clone();
            let check = Check::new(graph, &Prepare::new(40).hidden(hidden).dtype(dtype))
                .ranks(&[1, 2, 8])
                .tokens(&[1, 5, 40])
                .all_kinds()
                .executor("cuda", move |ranks| Group::loopback(&context, ranks));
            println!("{}", check.run(|_| ()).unwrap().into_result().unwrap());
        }
    }
}
