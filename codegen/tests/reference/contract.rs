//! The rounding contract, fact by fact.

use crate::graphs::{self, Binding, Builder, TOKENS, k2_params};
use crate::run;
use seamline_codegen::reference::{self, Buffer, Input, RankInputs, RankOutputs};
use seamline_codegen::workload::{Argument, Kind, Workload};
use seamline_codegen::{DType, Elem, Op, Operation, ParamId, Presence, Program, Role};

fn kinds() -> impl Iterator<Item = Kind> {
    [Kind::Ordinary, Kind::KIMI_K2, Kind::KIMI_K2_EXPERT_PARALLEL].into_iter().chain(Kind::HOSTILE)
}

fn buffer(dtype: DType, values: &[f32]) -> Buffer {
    let mut buffer = Buffer::new(dtype, values.len());
    seamline_codegen::numerics::store(dtype, values, buffer.bytes_mut());
    buffer
}

fn bits(buffer: &Buffer) -> &[u16] {
    buffer.as_slice().unwrap()
}

/// `finalize` of one token with one channel, without ranks.
fn finalize(rows: &[f32], map: &[i32], weights: &[f32]) -> RankOutputs {
    let binding = Binding { hidden: 1, top_k: map.len() as u32, dtype: DType::F32, ..Binding::default() };
    let program = binding.bind(&graphs::finalize());
    let map: Vec<u8> = map.iter().flat_map(|row| row.to_ne_bytes()).collect();
    let (rows, weights) = (buffer(DType::F32, rows), buffer(DType::F32, weights));
    let inputs = RankInputs(vec![(&rows).into(), Input::Bytes(&map), (&weights).into()]);
    reference::run(&program, &[inputs], 1).unwrap().remove(0)
}

#[test]
fn a_row_has_the_same_bits_at_any_number_of_tokens() {
    for graph in graphs::all() {
        for kind in kinds() {
            let program = Binding::default().bind(&graph);
            let workload = Workload::new(&program, 9, 3, kind);
            let whole = reference::run(&program, &workload.inputs(), 9).unwrap();
            for tokens in [0, 1, 2, 5] {
                let part = reference::run(&program, &workload.inputs(), tokens).unwrap();
                for (whole, part) in whole.iter().zip(&part) {
                    for (whole, part) in whole.outputs.iter().zip(&part.outputs) {
                        assert_eq!(part.len(), tokens * 264);
                        assert_eq!(
                            part.bytes(),
                            &whole.bytes()[..part.bytes().len()],
                            "{} {kind}",
                            program.name
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn all_ranks_store_the_same_bits() {
    for graph in graphs::all() {
        for kind in kinds() {
            let program = Binding { ranks: 8, ..Binding::default() }.bind(&graph);
            let ranks = run(&program, 3, 4, kind);
            assert_eq!(ranks.len(), if graph.has_collective() { 8 } else { 1 });
            assert!(ranks.iter().all(|rank| rank.outputs == ranks[0].outputs), "{} {kind}", program.name);
        }
    }
}

#[test]
fn every_stored_nan_is_canonical() {
    for dtype in DType::FLOATS {
        for graph in graphs::all() {
            let program = Binding { dtype, ..Binding::default() }.bind(&graph);
            for output in run(&program, 8, 5, Kind::InfAndNan).into_iter().flat_map(|rank| rank.outputs) {
                let nans: Vec<usize> = (0..output.len()).filter(|&i| output.to_f32()[i].is_nan()).collect();
                assert!(!nans.is_empty(), "{} {dtype}", program.name);
                for i in nans {
                    match output.as_slice::<u16>() {
                        Some(half) => assert_eq!(half[i], 0x7FFF),
                        None => assert_eq!(output.as_slice::<u32>().unwrap()[i], 0x7FFF_FFFF),
                    }
                }
            }
        }
    }
}

#[test]
fn a_dropped_expert_contributes_nothing() {
    let dropped = finalize(&[2.0, f32::NAN], &[0, -1, 0], &[3.0, f32::INFINITY, 0.5]);
    assert_eq!(dropped.outputs[0].to_f32(), [7.0]);
    assert_eq!(dropped.stray_rows, 0);
    for kind in [Kind::NanBehindDropped, Kind::AllDropped, Kind::OutOfRange, Kind::NoRows] {
        for rank in run(&Binding::default().bind(&graphs::k2(None)), 7, 6, kind) {
            assert!(rank.outputs.iter().all(|o| o.to_f32().iter().all(|x| x.is_finite())), "{kind}");
        }
    }
}

#[test]
fn a_token_without_experts_is_positive_zero() {
    assert_eq!(finalize(&[-1.0], &[-1, -1], &[1.0, 1.0]).outputs[0].as_slice::<u32>().unwrap(), [0]);
    assert_eq!(finalize(&[], &[0, 3], &[1.0, 1.0]).outputs[0].as_slice::<u32>().unwrap(), [0]);
}

#[test]
fn an_index_out_of_range_counts_as_dropped_and_is_counted() {
    let stray = finalize(&[2.0, 5.0], &[2, 3, i32::MIN, -2, i32::MAX, -1, 1], &[1.0; 7]);
    assert_eq!(stray.outputs[0].to_f32(), [5.0]);
    assert_eq!(stray.stray_rows, 5);
}

#[test]
fn stray_rows_are_counted_per_rank() {
    let program = Binding::default().bind(&graphs::k2(None));
    let workload = Workload::new(&program, 33, 8, Kind::OutOfRange);
    let ranks = reference::run(&program, &workload.inputs(), 33).unwrap();
    for (i, rank) in ranks.iter().enumerate() {
        let tensor = |param: ParamId| match &workload.rank(i)[param.0 as usize] {
            Argument::Tensor(buffer) => buffer,
            other => panic!("{other:?}"),
        };
        let count = (tensor(k2_params::ROWS).len() / 264) as i32;
        let map = tensor(k2_params::MAP).as_slice::<i32>().unwrap();
        let stray = map.iter().filter(|&&row| row < -1 || row >= count).count();
        assert!(stray > 0);
        assert_eq!(rank.stray_rows, stray as u64);
    }
}

#[test]
fn finalize_is_a_chain_of_fused_multiply_adds_in_order() {
    // 1 + 2^-12 squared is 1 + 2^-11 + 2^-24: only fused does the last term survive the subtraction.
    let x = 1.0 + 2f32.powi(-12);
    let fused = finalize(&[-(1.0 + 2f32.powi(-11)), x], &[0, 1], &[1.0, x]);
    assert_eq!(fused.outputs[0].to_f32(), [2f32.powi(-24)]);
    // Large first absorbs the small one; in the other order it would not matter, as they cancel exactly.
    let big = 2f32.powi(30);
    assert_eq!(finalize(&[big, 1.0, -big], &[0, 1, 2], &[1.0; 3]).outputs[0].to_f32(), [0.0]);
    assert_eq!(finalize(&[big, 1.0, -big], &[0, 2, 1], &[1.0; 3]).outputs[0].to_f32(), [1.0]);
}

#[test]
fn subnormals_are_kept() {
    let tiny = f32::from_bits(3);
    assert_eq!(finalize(&[tiny, tiny], &[0, 1], &[1.0, 1.0]).outputs[0].to_f32(), [f32::from_bits(6)]);
}

/// One rank's `x`, reduced; bf16.
fn sum(ranks: &[&[f32]]) -> Vec<RankOutputs> {
    let binding = Binding { hidden: ranks[0].len() as u32, ranks: ranks.len() as u32, ..Binding::default() };
    let buffers: Vec<Buffer> = ranks.iter().map(|x| buffer(DType::Bf16, x)).collect();
    let inputs: Vec<RankInputs<'_>> = buffers.iter().map(|x| RankInputs(vec![x.into()])).collect();
    reference::run(&binding.bind(&graphs::sum()), &inputs, 1).unwrap()
}

#[test]
fn all_reduce_adds_in_rank_order_from_rank_zero() {
    // 2^24 swallows a one; two ones are not swallowed.
    let big = 2f32.powi(24);
    let got = sum(&[&[big, 1.0, -0.0], &[1.0, 1.0, -0.0], &[-big, -big, -0.0], &[0.0, big, -0.0]]);
    assert_eq!(got[0].outputs[0].to_f32()[..2], [0.0, 2.0]);
    // It starts from a value, not from +0.0: a sum of negative zeros stays one.
    assert_eq!(bits(&got[0].outputs[0])[2], 0x8000);
}

#[test]
fn a_negative_zero_travels() {
    let program = Binding::default().bind(&graphs::k2(None));
    let ranks = run(&program, 16, 2, Kind::NegativeZeros);
    assert!(bits(&ranks[0].outputs[0]).contains(&0x8000));
}

#[test]
fn partials_are_rounded_to_the_wire_once_and_only_with_ranks() {
    // A half plus what bf16 cannot hold of it: gone on the wire, kept where there is none.
    let mut g = Builder::new("wire");
    let (a, b) = (g.value("a", TOKENS), g.value("b", TOKENS));
    let local = g.op(Op::Add(a, b));
    let out = g.op(Op::call(Operation::AllReduce, &[local.into()]));
    g.output("out", out, Elem::Fixed(DType::F32));
    let graph = g.build();
    let (a, b) = (buffer(DType::Bf16, &[0.5]), buffer(DType::Bf16, &[2f32.powi(-12)]));
    let result = |graph: &seamline_codegen::Graph, ranks: u32| {
        let program = Binding { hidden: 1, ranks, ..Binding::default() }.bind(graph);
        let inputs = vec![RankInputs(vec![(&a).into(), (&b).into()]); ranks as usize];
        reference::run(&program, &inputs, 1).unwrap()[0].outputs[0].to_f32()[0]
    };
    assert_eq!(result(&graph, 1), 0.5 + 2f32.powi(-12));
    assert_eq!(result(&graph, 2), 1.0);
    let wide = seamline_codegen::Graph {
        fixed: seamline_codegen::Fixed { wire: Some(DType::F32), ..graph.fixed },
        ..graph
    };
    assert_eq!(result(&wide, 2), 1.0 + 2f32.powi(-11));
}

/// `y = a + b; z = y - a`, with `y` returned or not: what `z` reads.
fn later_use(returned: bool) -> f32 {
    let mut g = Builder::new("later_use");
    let (a, b) = (g.value("a", TOKENS), g.value("b", TOKENS));
    let y = g.op(Op::Add(a, b));
    let z = g.op(Op::Sub(y, a));
    if returned {
        g.output("y", y, Elem::Pattern);
    }
    g.output("z", z, Elem::Pattern);
    let program = Binding { hidden: 1, ..Binding::default() }.bind(&g.build());
    let (a, b) = (buffer(DType::Bf16, &[1.0]), buffer(DType::Bf16, &[2f32.powi(-10)]));
    let inputs = [RankInputs(vec![(&a).into(), (&b).into()])];
    let outputs = reference::run(&program, &inputs, 1).unwrap().remove(0).outputs;
    outputs.last().unwrap().to_f32()[0]
}

#[test]
fn later_uses_of_a_returned_value_read_it_rounded() {
    assert_eq!(later_use(false), 2f32.powi(-10));
    assert_eq!(later_use(true), 0.0);
}

#[test]
fn flush_to_zero_in_the_calling_thread_changes_nothing() {
    let program = Binding { dtype: DType::F32, ..Binding::default() }.bind(&graphs::k2(None));
    let expected = run(&program, 4, 11, Kind::Subnormals);
    let workload = Workload::new(&program, 4, 11, Kind::Subnormals);
    let flushed = std::thread::spawn(move || {
        flush_to_zero();
        reference::run(&program, &workload.inputs(), 4).unwrap()
    });
    assert_eq!(flushed.join().unwrap(), expected);
    assert!(expected[0].outputs[0].to_f32().iter().any(|x| x.is_subnormal()));
}

/// What a library built with fast-math does to the thread that loads it.
fn flush_to_zero() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it affects the arithmetic of this thread alone, which does none but through the reference.
    unsafe {
        std::arch::asm!("ldmxcsr [{}]", in(reg) &0x9FC0u32, options(nostack, readonly));
    }
}

#[test]
fn presence_may_differ_between_ranks_before_the_exchange() {
    let graph = graphs::k2(None);
    let with = Binding { ranks: 2, ..Binding::default() }.bind(&graph);
    let without =
        Binding { ranks: 2, present: Presence::ALL.without(k2_params::SHARED), ..Binding::default() }
            .bind(&graph);
    let workload = Workload::new(&with, 3, 12, Kind::Ordinary);
    let mut inputs = workload.inputs();
    inputs[1].0[k2_params::SHARED.0 as usize] = Input::Absent;
    let mixed = reference::run_each(&[&with, &without], &inputs, 3).unwrap();
    // An ordinary sum is never -0.0, so adding zeros is the same as adding nothing.
    let zeros = Buffer::new(DType::Bf16, 3 * 264);
    inputs[1].0[k2_params::SHARED.0 as usize] = (&zeros).into();
    assert_eq!(mixed, reference::run(&with, &inputs, 3).unwrap());
    assert_ne!(mixed, run(&with, 3, 12, Kind::Ordinary));
}

#[test]
fn an_absent_term_leaves_the_other_with_its_sign() {
    let mut g = Builder::new("absent");
    let x = g.value("x", TOKENS);
    let o = g.optional("o", TOKENS);
    let o = g.op(Op::Param(o));
    for (name, op) in [("plus", Op::Add(o, x)), ("less", Op::Sub(x, o)), ("from", Op::Sub(o, x))] {
        let value = g.op(op);
        g.output(name, value, Elem::Pattern);
    }
    let graph = g.build();
    seamline_codegen::check::check(&graph).unwrap();
    let program = Binding { hidden: 3, present: Presence::ALL.without(ParamId(1)), ..Binding::default() };
    let x = buffer(DType::Bf16, &[1.5, -0.0, 0.0]);
    let inputs = RankInputs(vec![(&x).into(), Input::Absent]);
    let outputs = reference::run(&program.bind(&graph), &[inputs], 1).unwrap().remove(0).outputs;
    // Nothing is added: not even the zero that would make +0.0 of -0.0.
    let [x, negated] = [[0x3FC0, 0x8000, 0], [0xBFC0, 0, 0x8000]];
    assert_eq!(outputs.iter().map(bits).collect::<Vec<_>>(), [x, x, negated]);
}

#[test]
fn values_without_channels_are_stored_as_whole_rows() {
    let mut g = Builder::new("broadcast");
    let (gate, bias) = (g.value("gate", Role::PerToken(Elem::Pattern)), g.value("bias", graphs::CHANNELS));
    g.output("gate_out", gate, Elem::Pattern);
    g.output("bias_out", bias, Elem::Pattern);
    let program: Program = Binding { hidden: 3, ..Binding::default() }.bind(&g.build());
    let (gate, bias) = (buffer(DType::Bf16, &[1.0, 2.0]), buffer(DType::Bf16, &[5.0, 6.0, 7.0]));
    let outputs = reference::run(&program, &[RankInputs(vec![(&gate).into(), (&bias).into()])], 2).unwrap();
    assert_eq!(outputs[0].outputs[0].to_f32(), [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    assert_eq!(outputs[0].outputs[1].to_f32(), [5.0, 6.0, 7.0, 5.0, 6.0, 7.0]);
}
