//! How far the reference's bits are from the mathematics.

use crate::graphs::{self, Binding};
use seamline_codegen::reference::{self, ideal};
use seamline_codegen::workload::{Kind, Workload};
use seamline_codegen::{DType, Presence};

/// Half an ulp, relative.
fn unit_roundoff(dtype: DType) -> f64 {
    match dtype {
        DType::Bf16 => 2f64.powi(-8),
        DType::F16 => 2f64.powi(-11),
        _ => 2f64.powi(-24),
    }
}

#[test]
fn error_stays_within_a_few_roundings_of_what_is_stored() {
    let mut cases = 0;
    let mut worst = [0f64; 3];
    for graph in graphs::all() {
        let variants = Presence::variants(&graph);
        for (i, hidden) in [1, 7, 8, 255, 256, 257, 2880, 7168].into_iter().enumerate() {
            for (j, ranks) in [1, 2, 4, 8].into_iter().enumerate() {
                for (d, dtype) in DType::FLOATS.into_iter().enumerate() {
                    let at = cases as usize;
                    let top_k = [1, 2, 4, 6, 8, 10, 16, 22][(i + j + d) % 8];
                    let present = variants[at % variants.len()];
                    let program = Binding { hidden, top_k, ranks, dtype, present }.bind(&graph);
                    let tokens = if hidden < 64 { 32 } else { 3 };
                    let kind = [Kind::Ordinary, Kind::KIMI_K2][at % 2];
                    let workload = Workload::new(&program, tokens, cases, kind);
                    let stored = reference::run(&program, &workload.inputs(), tokens).unwrap();
                    let exact = ideal::run(&program, &workload.inputs(), tokens).unwrap();
                    // Rounded on the wire, where returned, and where a norm reads what was returned.
                    let coarsest = program
                        .outputs
                        .iter()
                        .map(|o| o.tensor.dtype)
                        .chain([dtype, program.dims.wire])
                        .map(unit_roundoff)
                        .fold(0.0, f64::max);
                    // Rounded on the wire and where returned: one outlier can meet both at their worst.
                    // In f32 each term's own rounding is as coarse, and a norm over a few channels of a sum
                    // that cancels amplifies it.
                    let bound = if coarsest == unit_roundoff(DType::F32) { 8.0 } else { 2.0 };
                    for (rank, (stored, exact)) in stored.iter().zip(&exact).enumerate() {
                        for (o, (stored, exact)) in stored.outputs.iter().zip(exact).enumerate() {
                            let error = ideal::relative_l2(stored, exact) / coarsest;
                            worst[d] = worst[d].max(error);
                            assert!(
                                error < bound,
                                "`{}` {:?}, {kind}, rank {rank}, output {o}: {error:.2} roundings",
                                program.name,
                                program.dims,
                            );
                        }
                    }
                    cases += 1;
                }
            }
        }
    }
    println!("{cases} cases; worst relative L2 error in roundings: {worst:.2?}");
    assert_eq!(cases, 8 * 8 * 4 * 3);
    // Had nothing been rounded at all, the bound above would say nothing.
    assert!(worst.iter().all(|&error| error > 0.1));
}

#[test]
fn integers_are_exact() {
    for graph in [graphs::k2(None), graphs::sum(), graphs::finalize()] {
        for dtype in DType::FLOATS {
            let program =
                Binding { hidden: 513, top_k: 22, ranks: 8, dtype, ..Binding::default() }.bind(&graph);
            let workload = Workload::new(&program, 4, 9, Kind::Integers);
            let stored = reference::run(&program, &workload.inputs(), 4).unwrap();
            let exact = ideal::run(&program, &workload.inputs(), 4).unwrap();
            for (stored, exact) in stored.iter().zip(&exact) {
                let values: Vec<f64> = stored.outputs[0].to_f32().into_iter().map(f64::from).collect();
                assert_eq!(values, exact[0], "{} {dtype}", program.name);
                assert!(exact[0].iter().any(|&x| x != 0.0));
            }
        }
    }
}

#[test]
fn relative_error_measures_what_it_says() {
    let stored = reference::Buffer::from_bytes(DType::F32, &[3f32, 4.0].map(f32::to_ne_bytes).concat());
    assert_eq!(ideal::relative_l2(&stored, &[3.0, 4.0]), 0.0);
    assert_eq!(ideal::relative_l2(&stored, &[0.0, 4.0]), 0.75);
    assert_eq!(ideal::relative_l2(&reference::Buffer::new(DType::F32, 2), &[0.0, 0.0]), 0.0);
    assert!(ideal::relative_l2(&stored, &[f64::NAN, 4.0]).is_nan());
}
