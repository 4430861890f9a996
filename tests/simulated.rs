//! Launches on the simulator: what a GPU would run, with the runtime's own regions, packing and chunking.
#![cfg(feature = "sim")]

use seamline::args::{Arg, ArgList};
use seamline::erased::{self, Erased};
use seamline::prelude::*;
use seamline::sim::{Options, Order, Simulator};
use seamline::{ErrorKind, Graph, Schedule};
use seamline_codegen::program::Program;
use seamline_codegen::reference::{self, Buffer, RankInputs};
use seamline_codegen::workload::{Argument, Kind, Workload};
use seamline_codegen::{Dims, ParamId, Presence, Request};
use std::sync::Arc;

/// The seam of a mixture of experts.
#[fused_pattern(top_k = 3, dtype = bf16)]
pub fn seam(
    rows: Permuted,
    map: RowMap,
    weights: ExpertWeights<f32>,
    shared: Option<Tokens>,
    mut residual: Tokens,
    gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    residual += all_reduce(finalize(rows, map, weights) + shared);
    let norm_out = rms_norm(residual, gamma, eps);
    (residual, norm_out)
}

/// A value that crosses the exchange, on a wire of its own dtype.
#[fused_pattern(dtype = f16, wire = f32)]
pub fn crossing(x: Tokens, scale: PerToken<f32>) -> Tokens {
    let scaled = x * scale;
    let sum_out = all_reduce(scaled) - scaled;
    sum_out
}

/// Inputs that may be absent on either side of the exchange.
#[fused_pattern(dtype = f32)]
pub fn sides(x: Tokens, before: Option<Tokens>, after: Option<Tokens>) -> Tokens {
    let out = all_reduce(x + before) + (x + after);
    out
}

/// A group on the simulator with a graph prepared.
struct Fixture {
    graph: &'static Graph,
    hidden: u32,
    ranks: u32,
    kernels: Vec<Kernel<Erased>>,
}

impl Fixture {
    fn new(graph: &'static Graph, ranks: u32, hidden: u32, order: Order, options: Prepare) -> Fixture {
        let simulator = Simulator::new(Options::new(order));
        let group = Group::with_executor(Arc::new(simulator), ranks).unwrap();
        assert_eq!(group[0].executor(), "sim");
        let kernels = erased::prepare_all(graph, &group, &options.hidden(hidden)).unwrap();
        Fixture { graph, hidden, ranks, kernels }
    }

    fn program(&self, present: Presence) -> Program {
        let request = Request { hidden: Some(self.hidden), top_k: None, dtype: None, ranks: self.ranks };
        self.graph.bind(&Dims::bind(self.graph, &request, present).unwrap()).unwrap()
    }

    /// Launches once and compares every rank with the reference.
    fn run(&self, programs: &[&Program], workloads: &[&Workload]) {
        let tokens = workloads[0].tokens();
        let arguments: Vec<_> = workloads.iter().enumerate().map(|(rank, w)| w.rank(rank)).collect();
        let mut outputs: Vec<Vec<Buffer>> = programs
            .iter()
            .zip(&arguments)
            .map(|(program, arguments)| unwritten(program, arguments, tokens))
            .collect();
        let bundles = outputs.iter_mut().zip(programs).zip(&arguments);
        let bundles =
            bundles.map(|((outputs, program), arguments)| (tokens, bundle(program, arguments, outputs)));
        erased::launch_all(&self.kernels, [Queue::host()], bundles).unwrap();
        let inputs: Vec<_> =
            arguments.iter().map(|a| RankInputs(a.iter().map(Argument::input).collect())).collect();
        let expected = reference::run_each(programs, &inputs, tokens).unwrap();
        for (rank, (got, want)) in outputs.iter().zip(expected).enumerate() {
            assert!(*got == want.outputs, "{}, T={tokens}, rank {rank}", self.graph.name);
        }
    }
}

/// Memory for the outputs, which holds what they overwrite where they are in place.
fn unwritten(program: &Program, arguments: &[Argument], tokens: usize) -> Vec<Buffer> {
    let outputs =
        program.outputs.iter().map(|output| match output.in_place.map(|p| &arguments[p.0 as usize]) {
            Some(Argument::Tensor(buffer)) => Buffer::clone(buffer),
            _ => Buffer::new(output.tensor.dtype, output.tensor.elements(tokens as u64) as usize),
        });
    outputs.collect()
}

fn bundle<'a>(program: &Program, arguments: &'a [Argument], outputs: &'a mut [Buffer]) -> ArgList<'a> {
    let mut outputs: Vec<_> = outputs.iter_mut().map(Some).collect();
    let in_place = |i: usize| program.outputs.iter().position(|o| o.in_place == Some(ParamId(i as u32)));
    let mut list = ArgList::new();
    for (i, argument) in arguments.iter().enumerate() {
        list.push(match (argument, in_place(i)) {
            (Argument::Absent, _) => Arg::Absent,
            (Argument::Scalar(x), _) => Arg::Scalar(*x),
            (Argument::Tensor(buffer), None) => Arg::Input(buffer.as_ref().into()),
            (Argument::Tensor(_), Some(output)) => Arg::InPlace(outputs[output].take().unwrap().into()),
        });
    }
    list.extend(outputs.into_iter().flatten().map(|output| Arg::Output(output.into())));
    list
}

#[test]
fn the_generated_source_stores_the_bits_of_the_reference() {
    for order in [Order::Forward, Order::Reverse, Order::Random(5)] {
        for (ranks, hidden) in [(1, 264), (3, 260)] {
            let fixture = Fixture::new(Seam::GRAPH, ranks, hidden, order, Prepare::new(4));
            let program = fixture.program(Presence::ALL);
            for (tokens, kind) in
                [(1, Kind::Ordinary), (4, Kind::InfAndNan), (3, Kind::OutOfRange), (2, Kind::NoRows)]
            {
                let workload = Workload::new(&program, tokens, 1, kind);
                let all = ranks as usize;
                fixture.run(&vec![&program; all], &vec![&workload; all]);
            }
        }
    }
}

#[test]
fn more_tokens_than_the_region_holds_run_as_several_kernels() {
    let fixture = Fixture::new(Seam::GRAPH, 2, 256, Order::Random(1), Prepare::new(7).exchange_tokens(2));
    let explanation = fixture.kernels[0].explain(7);
    assert_eq!((explanation.kernels, explanation.grid.clusters), (4, 2));
    assert_eq!(explanation.last.as_ref().map(|(_, grid)| grid.clusters), Some(1));
    let text = explanation.to_string();
    assert!(text.contains("kernels   3 x") && text.contains("then      1 x"), "{text}");
    assert_eq!(fixture.kernels[0].explain(6).last, None);
    let program = fixture.program(Presence::ALL);
    // The slots' epochs part: the last kernel of each launch has one token.
    for seed in 0..4 {
        let workload = Workload::new(&program, 7, seed, Kind::Ordinary);
        fixture.run(&[&program; 2], &[&workload; 2]);
    }
}

#[test]
fn the_regions_live_from_launch_to_launch() {
    let fixture = Fixture::new(Crossing::GRAPH, 4, 40, Order::Random(9), Prepare::new(5));
    let program = fixture.program(Presence::ALL);
    for launch in 0..12 {
        let workload = Workload::new(&program, 1 + launch * 3 % 5, launch as u64, Kind::Ordinary);
        fixture.run(&[&program; 4], &[&workload; 4]);
    }
    assert!(fixture.kernels[0].exchange_bytes() > 0);
}

/// What `owner` exchanges, wire and sums, lies in a region of its own, and has epochs of its own.
#[test]
fn a_kernel_of_two_schedules_has_a_region_for_each() {
    let options = Prepare::new(7).exchange_tokens(4).schedule_from(2, Schedule::Owner);
    let fixture = Fixture::new(Seam::GRAPH, 3, 520, Order::Random(3), options);
    let alone = |schedule| {
        let options = Prepare::new(7).exchange_tokens(4).schedule(schedule);
        Fixture::new(Seam::GRAPH, 3, 520, Order::Random(3), options).kernels[0].exchange_bytes()
    };
    let both = alone(Schedule::OneShot) + alone(Schedule::Owner);
    assert_eq!(fixture.kernels[0].exchange_bytes(), both);
    let program = fixture.program(Presence::ALL);
    // Five tokens are four by `owner` and one by `one_shot`.
    let explanation = fixture.kernels[0].explain(5);
    assert_eq!(explanation.schedule, "owner");
    assert!(explanation.last.is_some_and(|(entry, _)| entry.contains("_one_shot_")));
    for (seed, tokens) in [1, 3, 5, 7, 2, 1, 1, 4, 5, 1, 6, 7, 1, 3].into_iter().enumerate() {
        let workload = Workload::new(&program, tokens, seed as u64, Kind::Ordinary);
        fixture.run(&[&program; 3], &[&workload; 3]);
    }
}

#[test]
fn every_graph_stores_the_bits_of_the_reference_by_owner() {
    for (graph, ranks, hidden) in [(Seam::GRAPH, 8, 520), (Crossing::GRAPH, 4, 40), (Sides::GRAPH, 2, 1032)] {
        let options = Prepare::new(5).schedule(Schedule::Owner);
        let fixture = Fixture::new(graph, ranks, hidden, Order::Random(9), options);
        let program = fixture.program(Presence::ALL);
        for launch in 0..8 {
            let workload = Workload::new(&program, 1 + launch * 3 % 5, launch as u64, Kind::Ordinary);
            fixture.run(&vec![&program; ranks as usize], &vec![&workload; ranks as usize]);
        }
    }
}

#[test]
fn ranks_may_run_different_variants() {
    let fixture = Fixture::new(Seam::GRAPH, 2, 256, Order::Forward, Prepare::new(3));
    let with = fixture.program(Presence::ALL);
    let without = fixture.program(*Presence::variants(Seam::GRAPH).last().unwrap());
    let workloads = [&with, &without].map(|p| Workload::new(p, 3, 4, Kind::Ordinary));
    fixture.run(&[&with, &without], &[&workloads[0], &workloads[1]]);
}

#[test]
fn presence_may_differ_before_the_wire_alone() {
    let group = Group::with_executor(Arc::new(Simulator::new(Options::new(Order::Forward))), 2).unwrap();
    let kernels = Sides::prepare_all(&group, &Prepare::new(1).hidden(32)).unwrap();
    let x = vec![1.0f32; 32];
    let launch = |before: [bool; 2], after: [bool; 2]| {
        let mut outputs = [vec![0.0f32; 32], vec![0.0f32; 32]];
        let args = outputs.iter_mut().enumerate().map(|(rank, out)| SidesArgs {
            tokens: 1,
            x: (&x).into(),
            before: before[rank].then_some((&x).into()),
            after: after[rank].then_some((&x).into()),
            out: out.into(),
        });
        launch_all(&kernels, [Queue::host()], args).map(|()| outputs)
    };
    assert_eq!(launch([true, false], [false, false]).unwrap(), [[4.0; 32]; 2]);
    let error = launch([true, true], [false, true]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Presence { argument, .. } if argument == "after"), "{error}");
}

#[test]
fn a_fault_fails_later_launches_until_the_group_is_reset() {
    // Rank 1 is so late that rank 0 gives it up.
    let late = Options::new(Order::Forward).delay(1, std::time::Duration::from_secs(3600));
    let group = Group::with_executor(Arc::new(Simulator::new(late)), 2).unwrap();
    let options = Prepare::new(1).hidden(32).timeout(std::time::Duration::from_millis(5));
    let kernels = Crossing::prepare_all(&group, &options).unwrap();
    let (x, scale) = (vec![f16::ONE; 32], [1.0f32; 4]);
    let mut outputs = [vec![f16::ONE; 32], vec![f16::ONE; 32]];
    let mut launch = || {
        let args = outputs.iter_mut().map(|sum_out| CrossingArgs {
            tokens: 1,
            x: (&x).into(),
            scale: (&scale).into(),
            sum_out: sum_out.into(),
        });
        launch_all(&kernels, [Queue::host()], args)
    };
    launch().unwrap();
    let fault = group[0].status().unwrap().fault.expect("a fault");
    assert_eq!((fault.rank, fault.peer, fault.slot, fault.epoch), (0, 1, 0, 0));
    let error = launch().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Fault(f) if *f == fault), "{error}");
    assert!(
        error.to_string().contains("rank 0 waited in vain for rank 1") && error.to_string().contains("reset"),
        "{error}"
    );
    assert!(outputs[0].iter().all(|x| x.is_nan()), "what a launch that failed stores");
    seamline::reset(&group).unwrap();
    assert_eq!(group[0].status().unwrap().fault, None);
}

#[test]
fn what_lies_between_rows_is_neither_read_nor_written() {
    // Both outputs are columns of one buffer of 80 elements a row, with 8 to spare; the input is one of another.
    let group = Group::with_executor(Arc::new(Simulator::new(Options::new(Order::Random(3)))), 2).unwrap();
    let (hidden, stride, tokens) = (32, 80, 3);
    let options = Prepare::new(tokens)
        .hidden(hidden as u32)
        .dtype(DType::F32)
        .row_stride("residual_in", 50)
        .row_stride("residual_out", stride as u32)
        .row_stride("norm_out", stride as u32);
    let kernels = seamline::patterns::ArResidualRmsnorm::prepare_all(&group, &options).unwrap();
    let (x, gamma) = (vec![1.0f32; tokens * hidden], vec![1.0f32; hidden]);
    let mut residual = vec![f32::NAN; 50 * (tokens - 1) + hidden];
    residual.chunks_mut(50).for_each(|row| row[..hidden].fill(2.0));
    let mut outputs = [vec![7.0f32; tokens * stride], vec![7.0f32; tokens * stride]];
    let args = outputs.iter_mut().map(|buffer| {
        let address = buffer.as_mut_ptr() as u64;
        let len = stride * (tokens - 1) + hidden;
        let [residual_out, norm_out] = [address, address + 4 * 40]
            // SAFETY: both lie in the buffer, which nothing else uses until the launch has ended.
            .map(|address| unsafe { Output::raw(address, DType::F32, len) });
        seamline::patterns::ArResidualRmsnormArgs {
            tokens,
            allreduce_in: (&x).into(),
            residual_in: Input::from(&residual).shaped([tokens, hidden]),
            rms_gamma: (&gamma).into(),
            eps: 0.0,
            residual_out,
            norm_out,
        }
    });
    launch_all(&kernels, [Queue::host()], args).unwrap();
    for (at, x) in outputs.iter().flat_map(|buffer| buffer.iter().enumerate()) {
        let expected = match at % stride {
            0..32 => 4.0,
            40..72 => 1.0,
            _ => 7.0,
        };
        assert_eq!(*x, expected, "element {at}");
    }
}
