//! The simulator behind the runtime: groups, `prepare`, `launch_all`.

use seamline_codegen::reference::{self, Buffer, RankInputs};
use seamline_codegen::workload::{Argument, Kind, Workload};
use seamline_codegen::{DType, Dims, Graph, ParamId, Presence, Program, Request, parse};
use seamline_runtime::args::{Arg, ArgList};
use seamline_runtime::erased::{self, Erased};
use seamline_runtime::{Group, Kernel, Prepare, Queue, Rank};
use seamline_sim::{Options, Order, Simulated, Simulator};
use std::sync::Arc;

const HIDDEN: u32 = 520;

fn graph() -> &'static Graph {
    let source = "
        #[fused_pattern(top_k = 3, dtype = bf16)]
        pub fn seam(
            rows: Permuted, map: RowMap, weights: ExpertWeights<f32>, shared: Option<Tokens>, residual: Tokens,
            gamma: Channels, eps: Scalar,
        ) -> (Tokens, Tokens) {
            let sum = all_reduce(finalize(rows, map, weights) + shared) + residual;
            let normed = rms_norm(sum, gamma, eps);
            (sum, normed)
        }";
    Box::leak(Box::new(parse::parse_file(source).unwrap().remove(0)))
}

fn program(graph: &Graph, ranks: u32, present: Presence) -> Program {
    let request = Request { hidden: Some(HIDDEN), top_k: None, dtype: None, ranks };
    graph.bind(&Dims::bind(graph, &request, present).unwrap()).unwrap()
}

fn prepare(graph: &'static Graph, ranks: &[Rank], options: &Prepare) -> Vec<Kernel<Erased>> {
    erased::prepare_all(graph, ranks, options).unwrap()
}

/// Launches `workloads`, one per rank and of its program, and compares with the reference.
fn check(kernels: &[Kernel<Erased>], programs: &[&Program], workloads: &[&Workload]) {
    let tokens = workloads[0].tokens();
    let arguments = |rank: usize| workloads[rank].rank(rank);
    let output = || Buffer::new(DType::Bf16, tokens * HIDDEN as usize);
    let mut outputs = kernels.iter().map(|_| [output(), output()]).collect::<Vec<_>>();
    let lists = outputs.iter_mut().enumerate().map(|(rank, outputs)| {
        let inputs = arguments(rank).iter().map(|argument| match argument {
            Argument::Absent => Arg::Absent,
            Argument::Scalar(x) => Arg::Scalar(*x),
            Argument::Tensor(buffer) => Arg::Input(buffer.as_ref().into()),
        });
        (tokens, inputs.chain(outputs.iter_mut().map(|b| Arg::Output(b.into()))).collect::<ArgList<'_>>())
    });
    erased::launch_all(kernels, [Queue::host()], lists).unwrap();
    let inputs = (0..kernels.len()).map(|r| RankInputs(arguments(r).iter().map(Argument::input).collect()));
    let expected = reference::run_each(programs, &inputs.collect::<Vec<_>>(), tokens).unwrap();
    for (rank, (got, expected)) in outputs.iter().zip(&expected).enumerate() {
        for (o, (got, expected)) in got.iter().zip(&expected.outputs).enumerate() {
            assert!(got == expected, "output {o} of rank {rank} differs, {tokens} tokens");
        }
    }
}

#[test]
fn a_group_is_launched_again_and_again() {
    let graph = graph();
    for order in [Order::Forward, Order::Random(11)] {
        let ranks = Group::with_executor(Arc::new(Simulator::new(Options::new(order))), 3).unwrap();
        assert_eq!(ranks[0].executor(), "sim");
        let kernels = prepare(graph, &ranks, &Prepare::new(20).hidden(HIDDEN).exchange_tokens(6));
        let program = program(graph, 3, Presence::ALL);
        // 20 tokens are several kernels, each of which fits the region.
        for (seed, tokens) in [20, 1, 6, 7, 0].into_iter().enumerate() {
            let workload = Workload::new(&program, tokens, seed as u64, Kind::Ordinary);
            check(&kernels, &[&program; 3], &[&workload; 3]);
        }
        assert!(ranks.iter().all(|rank| rank.status().unwrap().fault.is_none()));
    }
}

#[test]
fn ranks_may_differ_in_what_they_add_before_the_wire() {
    let graph = graph();
    let kernels = prepare(graph, &Group::simulated(2).unwrap(), &Prepare::new(4).hidden(HIDDEN));
    let (with, without) =
        (program(graph, 2, Presence::ALL), program(graph, 2, Presence::ALL.without(ParamId(3))));
    let workloads = [&with, &without].map(|program| Workload::new(program, 4, 3, Kind::Ordinary));
    check(&kernels, &[&with, &without], &[&workloads[0], &workloads[1]]);
}

#[test]
fn stray_row_indices_are_counted() {
    let graph = graph();
    let ranks = Group::simulated(2).unwrap();
    let kernels = prepare(graph, &ranks, &Prepare::new(9).hidden(HIDDEN));
    let program = program(graph, 2, Presence::ALL);
    let workload = Workload::new(&program, 9, 3, Kind::OutOfRange);
    check(&kernels, &[&program; 2], &[&workload; 2]);
    let expected = reference::run(&program, &workload.inputs(), 9).unwrap();
    for (rank, expected) in ranks.iter().zip(expected) {
        assert!(expected.stray_rows > 0);
        assert_eq!(rank.status().unwrap().out_of_range, expected.stray_rows);
    }
}
