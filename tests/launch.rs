//! Groups, `prepare` and `launch`, on the reference executor.

use seamline::args::{Arg, ArgList};
use seamline::prelude::*;
use seamline::{ErrorKind, Schedule};
use seamline_codegen::program::Program;
use seamline_codegen::reference::{self, Buffer, RankInputs};
use seamline_codegen::workload::{Argument, Kind, Workload};
use seamline_codegen::{Dims, Presence, Request};
use std::time::Duration;

/// The seam of a mixture of experts.
#[fused_pattern(top_k = 4)]
pub fn seam(
    rows: Permuted,
    map: RowMap,
    weights: ExpertWeights<f32>,
    shared: Option<Tokens>,
    residual_in: Tokens,
    gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    let local = finalize(rows, map, weights) + shared;
    let residual_out = all_reduce(local) + residual_in;
    let norm_out = rms_norm(residual_out, gamma, eps);
    (residual_out, norm_out)
}

/// Without ranks, the residual updated in place.
#[fused_pattern(dtype = f32)]
pub fn add_norm(x: Tokens, mut residual: Tokens, gamma: Channels, eps: Scalar) -> (Tokens, Tokens) {
    residual += x;
    let normed = rms_norm(residual, gamma, eps);
    (residual, normed)
}

/// Inputs that may be absent on either side of the exchange.
#[fused_pattern(hidden = 8, dtype = f32)]
pub fn sides(x: Tokens, before: Option<Tokens>, after: Option<Tokens>) -> Tokens {
    let out = all_reduce(x + before) + (x + after);
    out
}

/// More optional inputs than variants are made of unasked.
#[fused_pattern(hidden = 8, dtype = f32)]
pub fn three(x: Tokens, a: Option<Tokens>, b: Option<Tokens>, c: Option<Tokens>) -> Tokens {
    let out = x + a + b + c;
    out
}

const HIDDEN: u32 = 320;

fn options(max_tokens: usize) -> Prepare {
    Prepare::new(max_tokens).hidden(HIDDEN).dtype(DType::Bf16)
}

fn program(ranks: u32, present: Presence) -> Program {
    let request = Request { hidden: Some(HIDDEN), top_k: None, dtype: Some(DType::Bf16), ranks };
    Seam::GRAPH.bind(&Dims::bind(Seam::GRAPH, &request, present).unwrap()).unwrap()
}

fn without_shared() -> Presence {
    *Presence::variants(Seam::GRAPH).last().unwrap()
}

fn outputs(tokens: usize) -> [Buffer; 2] {
    [(); 2].map(|()| Buffer::new(DType::Bf16, tokens * HIDDEN as usize))
}

/// A rank's arguments in a list.
fn list<'a>(inputs: &'a [Argument], outputs: &'a mut [Buffer]) -> ArgList<'a> {
    let inputs = inputs.iter().map(|argument| match argument {
        Argument::Absent => Arg::Absent,
        Argument::Scalar(x) => Arg::Scalar(*x),
        Argument::Tensor(buffer) => Arg::Input(buffer.as_ref().into()),
    });
    inputs.chain(outputs.iter_mut().map(|buffer| Arg::Output(buffer.into()))).collect()
}

/// What `launch_all` stores, per rank.
fn launched(kernels: &[Kernel<Seam>], workloads: &[&Workload]) -> Vec<[Buffer; 2]> {
    let tokens = workloads[0].tokens();
    let mut stored: Vec<_> = kernels.iter().map(|_| outputs(tokens)).collect();
    let lists = stored
        .iter_mut()
        .zip(workloads)
        .enumerate()
        .map(|(rank, (out, w))| (tokens, list(w.rank(rank), out)));
    seamline::erased::launch_all(kernels, [Queue::host()], lists).unwrap();
    stored
}

/// What the interpreter says.
fn expected(programs: &[&Program], workloads: &[&Workload]) -> Vec<Vec<Buffer>> {
    let inputs = workloads.iter().enumerate();
    let inputs: Vec<_> =
        inputs.map(|(rank, w)| RankInputs(w.rank(rank).iter().map(Argument::input).collect())).collect();
    let results = reference::run_each(programs, &inputs, workloads[0].tokens()).unwrap();
    results.into_iter().map(|r| r.outputs).collect()
}

#[test]
fn a_typed_bundle_runs_on_one_rank() {
    let rank = Group::reference(1).unwrap().remove(0);
    assert_eq!((rank.executor(), rank.group_size(), rank.index()), ("reference", 1, 0));
    let kernel = AddNorm::prepare(&rank, &Prepare::new(4).hidden(8)).unwrap();
    let (x, gamma) = (vec![1.0f32; 16], vec![2.0f32; 8]);
    let (mut residual, mut normed) = (vec![2.0f32; 16], vec![0.0f32; 16]);
    let args = AddNormArgs {
        tokens: 2,
        x: (&x).into(),
        residual: (&mut residual).into(),
        gamma: (&gamma).into(),
        eps: 0.0,
        normed: (&mut normed).into(),
    };
    kernel.launch(Queue::host(), args).unwrap();
    assert_eq!(residual, [3.0; 16]);
    assert_eq!(normed, [2.0; 16]);
}

#[test]
fn every_rank_stores_what_the_interpreter_says() {
    let program = program(3, Presence::ALL);
    let kernels = Seam::prepare_all(&Group::reference(3).unwrap(), &options(8)).unwrap();
    for (seed, kind) in [Kind::Ordinary].into_iter().chain(Kind::HOSTILE).enumerate() {
        let workload = Workload::new(&program, 5, seed as u64, kind);
        let stored = launched(&kernels, &[&workload; 3]);
        for (rank, (got, want)) in stored.iter().zip(expected(&[&program; 3], &[&workload; 3])).enumerate() {
            assert!(got[..] == want[..], "{kind:?}, rank {rank}");
        }
    }
}

#[test]
fn presence_may_differ_between_ranks_before_the_wire() {
    let (with, without) = (program(2, Presence::ALL), program(2, without_shared()));
    let kernels = Seam::prepare_all(&Group::reference(2).unwrap(), &options(8)).unwrap();
    let workloads = [&with, &without].map(|p| Workload::new(p, 3, 7, Kind::Ordinary));
    let stored = launched(&kernels, &[&workloads[0], &workloads[1]]);
    let want = expected(&[&with, &without], &[&workloads[0], &workloads[1]]);
    assert!(stored.iter().zip(&want).all(|(got, want)| got[..] == want[..]));
}

#[test]
fn presence_may_not_differ_after_the_wire() {
    let ranks = Group::reference(2).unwrap();
    let kernels = Sides::prepare_all(&ranks, &Prepare::new(1)).unwrap();
    let launch = |before: [bool; 2], after: [bool; 2]| {
        let x = vec![1.0f32; 8];
        let mut out = [vec![0.0f32; 8], vec![0.0f32; 8]];
        let args = out.iter_mut().enumerate().map(|(rank, out)| SidesArgs {
            tokens: 1,
            x: (&x).into(),
            before: before[rank].then_some((&x).into()),
            after: after[rank].then_some((&x).into()),
            out: out.into(),
        });
        seamline::launch_all(&kernels, [Queue::host()], args).map(|()| out)
    };
    assert_eq!(launch([true, false], [true, true]).unwrap(), [[5.0; 8]; 2]);
    let error = launch([true, true], [true, false]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Presence { rank: 1, .. }), "{error}");
    assert!(error.to_string().contains("`after` is absent on rank 1 and present on rank 0"), "{error}");
}

#[test]
fn a_graph_made_by_hand_is_checked() {
    let mut graph = AddNorm::GRAPH.clone();
    graph.params.to_mut()[1].in_place = None;
    let ranks = Group::reference(1).unwrap();
    let options = Prepare::new(4).hidden(8);
    let error = seamline::erased::prepare_all(Box::leak(Box::new(graph)), &ranks, &options).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Graph { problems, .. } if problems.len() == 1), "{error}");
    assert!(error.to_string().contains("`residual` is written in place of a parameter"), "{error}");
}

#[test]
fn longer_buffers_than_the_tokens_need_are_left_alone() {
    let program = program(1, Presence::ALL);
    let workload = Workload::new(&program, 6, 1, Kind::Ordinary);
    let rank = Group::reference(1).unwrap().remove(0);
    let kernel = Seam::prepare(&rank, &options(8)).unwrap();
    let (mut whole, mut part) = (outputs(6), outputs(6));
    kernel.erase().launch(Queue::host(), (6, list(workload.rank(0), &mut whole))).unwrap();
    kernel.erase().launch(Queue::host(), (4, list(workload.rank(0), &mut part))).unwrap();
    let row = HIDDEN as usize * 2;
    for (whole, part) in whole.iter().zip(&part) {
        assert_eq!(whole.bytes()[..4 * row], part.bytes()[..4 * row], "a row does not depend on T");
        assert!(part.bytes()[4 * row..].iter().all(|b| *b == 0), "rows past T are untouched");
    }
}

#[test]
fn no_tokens_are_nothing_to_do() {
    let workload = Workload::new(&program(2, Presence::ALL), 1, 1, Kind::Ordinary);
    let kernels = Seam::prepare_all(&Group::reference(2).unwrap(), &options(8)).unwrap();
    let mut stored = [outputs(1), outputs(1)];
    let lists = stored.iter_mut().enumerate().map(|(rank, out)| (0, list(workload.rank(rank), out)));
    seamline::erased::launch_all(&kernels, [Queue::host()], lists).unwrap();
    assert!(stored.iter().flatten().all(|b| b.bytes().iter().all(|b| *b == 0)));
}

#[test]
fn stray_rows_are_counted_and_fail_nothing() {
    let program = program(1, Presence::ALL);
    let workload = Workload::new(&program, 4, 3, Kind::OutOfRange);
    let rank = Group::reference(1).unwrap().remove(0);
    let kernel = Seam::prepare(&rank, &options(4)).unwrap();
    let stray = reference::run(&program, &workload.inputs(), 4).unwrap()[0].stray_rows;
    for launches in 1..=2 {
        kernel.erase().launch(Queue::host(), (4, list(workload.rank(0), &mut outputs(4)))).unwrap();
        let status = kernel.status().unwrap();
        assert_eq!((status.fault, status.out_of_range), (None, launches * stray));
    }
    assert!(stray > 0);
    seamline::reset(&[rank]).unwrap();
    assert_eq!(kernel.status().unwrap().out_of_range, 0);
}

#[test]
fn ranks_prepare_from_threads_of_their_own() {
    let ranks = Group::reference(4).unwrap();
    let kernels: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            ranks.iter().map(|rank| scope.spawn(|| Seam::prepare(rank, &options(4)))).collect();
        threads.into_iter().map(|t| t.join().unwrap().unwrap()).collect()
    });
    let program = program(4, Presence::ALL);
    let workload = Workload::new(&program, 4, 11, Kind::Ordinary);
    let stored = launched(&kernels, &[&workload; 4]);
    let want = expected(&[&program; 4], &[&workload; 4]);
    assert!(stored.iter().zip(&want).all(|(got, want)| got[..] == want[..]));
}

#[test]
fn one_rank_that_fails_fails_all() {
    let ranks = Group::reference(3).unwrap();
    let errors: Vec<_> = std::thread::scope(|scope| {
        let prepare = |rank: &Rank| {
            let options = options(4);
            Seam::prepare(rank, &if rank.index() == 1 { options.top_k(5) } else { options })
        };
        let threads: Vec<_> = ranks.iter().map(|rank| scope.spawn(move || prepare(rank))).collect();
        threads.into_iter().map(|t| t.join().unwrap().unwrap_err()).collect()
    });
    for error in errors {
        assert!(matches!(error.kind(), ErrorKind::Bind { .. }) && error.rank() == Some(1), "{error}");
    }
}

#[test]
fn ranks_that_prepare_different_things_are_told() {
    let ranks = Group::reference(2).unwrap();
    std::thread::scope(|scope| {
        for rank in &ranks {
            scope.spawn(move || {
                let error = Seam::prepare(rank, &options(4 + rank.index() as usize)).unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Disagree { rank: 1, .. }), "{error}");
                assert!(error.to_string().contains("`max_tokens` than rank 0 (5, not 4)"), "{error}");
            });
        }
    });
}

#[test]
fn a_rank_that_prepares_alone_does_not_wait_for_ever() {
    let ranks = Group::reference(2).unwrap();
    let error = Seam::prepare(&ranks[0], &options(4).timeout(Duration::from_millis(10))).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::PeerTimeout { missing, .. } if missing == &[1]), "{error}");
    assert!(error.to_string().contains("prepare_all"), "{error}");
}

#[test]
fn a_timeout_may_be_for_ever() {
    let ranks = Group::reference(2).unwrap();
    let options = options(4).timeout(Duration::MAX);
    std::thread::scope(|scope| {
        for rank in &ranks {
            scope.spawn(|| Seam::prepare(rank, &options).unwrap());
        }
    });
}

#[test]
fn ranks_that_prepare_different_schedules_are_told() {
    let ranks = Group::reference(2).unwrap();
    std::thread::scope(|scope| {
        for rank in &ranks {
            scope.spawn(move || {
                let options = options(4).schedule_from(2 + rank.index() as usize, Schedule::Owner);
                let error = Seam::prepare(rank, &options).unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Disagree { rank: 1, .. }), "{error}");
                let expected = "one_shot, owner from 3 tokens on, not one_shot, owner from 2 tokens on";
                assert!(error.to_string().contains(expected), "{error}");
            });
        }
    });
}

#[test]
fn a_launch_is_explained() {
    let kernels = Seam::prepare_all(&Group::reference(2).unwrap(), &options(64)).unwrap();
    let explanation = kernels[0].explain(3);
    let row = u64::from(HIDDEN) * 2;
    // Four experts, shared, residual; map and weights; gamma.
    assert_eq!(explanation.bytes_read, 3 * (6 * row + 2 * 4 * 4) + row);
    assert_eq!(explanation.bytes_written, 3 * 2 * row);
    assert_eq!(explanation.bytes_sent, 3 * row);
    let text = explanation.to_string();
    assert!(text.contains("seam of 3 tokens: one_shot") && text.contains(&explanation.entry), "{text}");
}

#[test]
fn a_launch_by_two_schedules_is_explained() {
    let options = options(64).schedule_from(2, Schedule::Owner);
    let kernels = Seam::prepare_all(&Group::reference(2).unwrap(), &options).unwrap();
    let explained = |rank: usize, tokens| {
        let explanation = kernels[rank].explain(tokens);
        (explanation.schedule, explanation.bytes_sent, explanation.bytes_received)
    };
    let row = u64::from(HIDDEN) * 2;
    assert_eq!(explained(0, 1), ("one_shot", row, row));
    // Of 320 channels rank 0 owns 256, whose sums are f32.
    let (less, more) = (256 * 2 + 64 * 4, 64 * 2 + 256 * 4);
    assert_eq!(explained(0, 3), ("owner", 3 * more, 3 * less));
    assert_eq!(explained(1, 3), ("owner", 3 * less, 3 * more));
    let text = kernels[0].explain(3).to_string();
    assert!(text.contains(": owner\n") && text.contains("_owner_"), "{text}");
}

#[test]
fn the_variant_with_the_most_inputs_is_explained() {
    let options = Prepare::new(4).variants(&[&["a", "b"], &["c"]]);
    let kernel = Three::prepare(&Group::reference(1).unwrap()[0], &options).unwrap();
    assert_eq!(kernel.explain(2).bytes_read, 2 * 3 * 8 * 4);
}

#[test]
fn no_more_tokens_are_explained_than_a_launch_can_have() {
    let kernels = Seam::prepare_all(&Group::reference(2).unwrap(), &options(64)).unwrap();
    for tokens in [65, usize::MAX / 4, usize::MAX] {
        assert_eq!(kernels[0].explain(tokens), kernels[0].explain(64));
    }
    assert_eq!(kernels[0].explain(0).kernels, 0);
}
