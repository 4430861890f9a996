//! Generated kernels, run by the simulator, store the bits of the reference: in every order, launch after launch.

#[path = "support/group.rs"]
mod group;

use group::{Group, K25, program};
use seamline_codegen::reference;
use seamline_codegen::schedule::{DeviceModel, Planner, SCHEDULES, Schedule};
use seamline_codegen::workload::{Kind, Workload};
use seamline_codegen::{ParamId, Presence, Program};
use seamline_sim::{Options, Order};
use std::time::{Duration, Instant};

/// One launch on every rank, compared with the reference.
fn check(group: &mut Group, tokens: usize, kind: Kind, order: Order) {
    let workload = Workload::new(&group.program, tokens, 1, kind);
    let expected = reference::run(&group.program, &workload.inputs(), tokens).unwrap();
    let mut calls = [group.call(&workload)];
    let report = group.run(&mut calls, &Options::new(order)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        report.clusters,
        (calls[0].launches[0].grid.0 / calls[0].launches[0].cluster * group.program.dims.ranks) as u64
    );
    if let Some(difference) = calls[0].difference(&group.program, &expected) {
        panic!("{:?} T={tokens} {kind:?} {order}: {difference}", group.program.dims);
    }
}

/// Every schedule that can run a program.
fn schedules(program: &Program) -> Vec<Schedule> {
    let all = SCHEDULES.iter().map(|def| def.schedule);
    all.filter(|schedule| schedule.refusal(program).is_none()).collect()
}

/// The launches of `tokens` by every schedule.
fn sweep(
    source: &str,
    (hidden, top_k, ranks): (u32, u32, u32),
    present: Presence,
    tokens: &[usize],
) -> usize {
    let program = program(source, hidden, top_k, ranks, present);
    schedules(&program).into_iter().map(|schedule| sweep_by(schedule, program.clone(), tokens)).sum()
}

/// One after the other on the same exchange memory; each with another kind and order.
fn sweep_by(schedule: Schedule, program: Program, tokens: &[usize]) -> usize {
    let most = *tokens.iter().max().unwrap() as u64;
    let mut group = Group::of(schedule, program, most);
    let orders = [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2)];
    let kinds = [Kind::Ordinary, Kind::KIMI_K2, Kind::KIMI_K2_EXPERT_PARALLEL]
        .into_iter()
        .chain(Kind::HOSTILE)
        .cycle();
    for ((&tokens, order), kind) in tokens.iter().zip(orders.into_iter().cycle()).zip(kinds) {
        check(&mut group, tokens, kind, order);
    }
    tokens.len()
}

#[test]
fn real_sizes_store_the_references_bits() {
    let no_shared = Presence::ALL.without(ParamId(3));
    let mut cases = 0;
    for ranks in [1, 2, 4, 8] {
        cases += sweep(K25, (7168, 8, ranks), Presence::ALL, &[1, 2, 3, 4]);
        cases += sweep(K25, (2880, 4, ranks), no_shared, &[7, 1, 8, 2]);
    }
    assert_eq!(cases, 8 + 2 * 24);
}

#[test]
fn every_kind_of_input_stores_the_references_bits() {
    let mut cases = 0;
    for (hidden, top_k, ranks) in
        [(256, 1, 1), (264, 2, 2), (1000, 6, 3), (2048, 10, 4), (333, 3, 2), (7, 22, 2), (1, 5, 4)]
    {
        cases += sweep(K25, (hidden, top_k, ranks), Presence::ALL, &[5; 13]);
    }
    assert_eq!(cases, 13 + 2 * 78);
}

const BODIES: [&str; 6] = [
    "pub fn residual_in_place(x: Tokens, mut residual: Tokens, w: Channels<f32>, eps: Scalar) -> (Tokens, Tokens) {
        residual += all_reduce(x);
        let y = rms_norm(residual, 1.0 + w, eps);
        (residual, y)
    }",
    "pub fn no_residual(x: Tokens<f16>, w: Channels<bf16>, eps: Scalar) -> (Tokens<f32>,) {
        let y = rms_norm(all_reduce(x), w, eps);
        (y,)
    }",
    "pub fn no_norm(rows: Permuted, map: RowMap, weights: ExpertWeights, gate: PerToken<f32>, x: Tokens) -> (Tokens,) {
        let y = all_reduce(finalize(rows, map, weights)) * gate - x;
        (y,)
    }",
    "pub fn sandwich(x: Tokens, residual: Tokens, a: Channels, b: Channels, eps: Scalar) -> (Tokens, Tokens) {
        let inner = rms_norm(all_reduce(x), a, eps);
        let sum = residual + inner;
        let y = rms_norm(sum, b, eps);
        (sum, y)
    }",
    "pub fn norm_first(x: Tokens, a: Channels, b: Channels, eps: Scalar) -> (Tokens,) {
        let y = rms_norm(all_reduce(rms_norm(x, a, eps)), b, eps);
        (y,)
    }",
    "pub fn alone(x: Tokens, scale: Scalar, b: Channels<f32>) -> (Tokens, Tokens<f16>) {
        let y = -x * scale + b;
        let z = y * 0.1;
        (y, z)
    }",
];

#[test]
fn other_bodies_store_the_references_bits() {
    let mut cases = 0;
    for body in BODIES {
        for attribute in ["dtype = bf16", "dtype = bf16, wire = f32"] {
            let wire = attribute.contains("wire");
            if wire && !body.contains("all_reduce") {
                continue;
            }
            let source = format!("#[fused_pattern({attribute})] {body}");
            for hidden in [520, 2048] {
                cases += sweep(
                    &source,
                    (hidden, 4, if body.contains("all_reduce") { 3 } else { 1 }),
                    Presence::ALL,
                    &[1, 9, 4],
                );
            }
        }
    }
    assert_eq!(cases, 6 + 2 * 60);
}

/// Queues launches of the `tokens` on every rank, and compares each with the reference.
fn back_to_back(group: &mut Group, tokens: &[usize], options: &Options) {
    let workloads =
        tokens.iter().enumerate().map(|(i, &t)| Workload::new(&group.program, t, i as u64, Kind::Ordinary));
    let workloads = workloads.collect::<Vec<_>>();
    let mut calls = workloads.iter().map(|w| group.call(w)).collect::<Vec<_>>();
    group.run(&mut calls, options).unwrap_or_else(|e| panic!("{options:?}: {e}"));
    for (i, (call, workload)) in calls.iter().zip(&workloads).enumerate() {
        let expected = reference::run(&group.program, &workload.inputs(), workload.tokens()).unwrap();
        if let Some(difference) = call.difference(&group.program, &expected) {
            panic!("launch {i}, {options:?}: {difference}");
        }
    }
}

/// The schedules of several ranks.
const EXCHANGING: [Schedule; 2] = [Schedule::OneShot, Schedule::Owner];

#[test]
fn launches_of_changing_size_follow_each_other() {
    for (seed, schedule) in (0..12).flat_map(|seed| EXCHANGING.map(|schedule| (seed, schedule))) {
        let mut group = Group::of(schedule, program(K25, 512, 2, 2 + seed as u32 % 3, Presence::ALL), 7);
        let options = Options::new(Order::Random(seed));
        back_to_back(&mut group, &[7, 1, 1, 3, 7, 2, 5, 1, 6, 7], &options);
        back_to_back(&mut group, &[1, 7, 4], &options);
    }
}

#[test]
fn a_thousand_launches_are_queued_at_once() {
    for (schedule, hidden) in [(Schedule::OneShot, 256), (Schedule::Owner, 264)] {
        let mut group = Group::of(schedule, program(K25, hidden, 2, 2, Presence::ALL), 5);
        let tokens = (0..1000).map(|i| 1 + i * 7 % 5).collect::<Vec<_>>();
        back_to_back(&mut group, &tokens, &Options::new(Order::Random(21)));
    }
}

#[test]
fn more_tokens_than_clusters_are_sent_before_any_is_received() {
    let orders = [Order::Forward, Order::Reverse, Order::Random(4)];
    for (i, order) in orders.into_iter().enumerate() {
        for schedule in EXCHANGING {
            let small = DeviceModel { sms: 1, ..DeviceModel::H200 };
            let program = program(K25, 520, 2, 2, Presence::ALL);
            let mut group = Group::scheduled(small, schedule, program, 24, |source| source).unwrap();
            let call = group.call(&Workload::new(&group.program, 24, 0, Kind::Ordinary));
            assert!(call.launches[0].entry.ends_with("_waves"), "{}", call.launches[0].entry);
            back_to_back(&mut group, &[24, 5 + i, 20], &Options::new(order));
        }
    }
}

/// A row of fewer blocks than ranks: some own nothing, and hear of owners alone.
#[test]
fn ranks_that_own_no_block_keep_pace() {
    for (hidden, ranks) in [(8, 8), (256, 3), (300, 4)] {
        let mut group = Group::of(Schedule::Owner, program(K25, hidden, 2, ranks, Presence::ALL), 6);
        for seed in 0..4 {
            let late = Options::new(Order::Random(seed)).delay(ranks - 1, Duration::from_millis(3));
            back_to_back(&mut group, &[6, 1, 1, 2, 6, 3, 1, 6], &late);
        }
    }
}

/// Each norms something known before the exchange, and uses it after.
const BESIDE: [&str; 2] = [
    "pub fn beside(x: Tokens, w: Channels, eps: Scalar) -> (Tokens,) {
        let y = all_reduce(x) + rms_norm(x, w, eps);
        (y,)
    }",
    "pub fn gated(x: Tokens, gate: PerToken<f32>, w: Channels, eps: Scalar) -> (Tokens, Tokens) {
        let y = all_reduce(x * w) * rms_norm(x, w, eps);
        let z = y * (gate * 2.0);
        (y, z)
    }",
];

#[test]
fn every_body_stores_the_references_bits_on_a_device_with_room_for_few_blocks() {
    let small = DeviceModel { sms: 1, ..DeviceModel::H200 };
    for schedule in EXCHANGING {
        let mut waves = Vec::new();
        for body in BODIES.iter().chain(&BESIDE).filter(|body| body.contains("all_reduce")) {
            let source = format!("#[fused_pattern(dtype = bf16)] {body}");
            let program = program(&source, 520, 4, 2, Presence::ALL);
            // As the runtime does: what crosses the exchange takes several launches instead.
            let planner = Planner::new(&program, small, 1, true).with_schedules([(1, schedule)]);
            let most = planner.tokens_per_launch().min(24) as usize;
            let mut group = Group::scheduled(small, schedule, program, 24, |source| source).unwrap();
            let call = group.call(&Workload::new(&group.program, most, 0, Kind::Ordinary));
            if call.launches[0].entry.ends_with("_waves") {
                waves.push(group.program.name.clone());
            }
            back_to_back(&mut group, &[most, 1, most - 1], &Options::default());
        }
        assert_eq!(waves, ["residual_in_place", "no_residual", "no_norm", "sandwich", "norm_first"]);
    }
}

#[test]
fn epochs_wrap() {
    for schedule in EXCHANGING {
        let mut group = Group::of(schedule, program(K25, 512, 2, 2, Presence::ALL), 2);
        group.set_epoch((3 << 30) - 3);
        back_to_back(&mut group, &[2, 1, 2, 2, 1, 2], &Options::new(Order::Random(9)));
    }
}

#[test]
fn a_late_rank_changes_nothing() {
    for schedule in EXCHANGING {
        let mut group = Group::of(schedule, program(K25, 512, 2, 4, Presence::ALL), 3);
        let late = Options::new(Order::Random(3)).delay(2, Duration::from_secs(25));
        back_to_back(&mut group, &[3, 2, 3], &late);
    }
}

/// Three launches without rank 1, each of whose peers says so.
fn without_rank_1(schedule: Schedule, hidden: u32) {
    let mut group = Group::of(schedule, program(K25, hidden, 2, 4, Presence::ALL), 3);
    let workload = Workload::new(&group.program, 3, 0, Kind::Ordinary);
    let mut calls = [(); 3].map(|()| group.call(&workload));
    for call in &mut calls {
        call.launches.retain(|l| l.rank != 1);
    }
    let start = Instant::now();
    let report = group.run(&mut calls, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!((30..60).contains(&(report.simulated_ns / 1_000_000_000)), "one timeout, not three: {report:?}");
    for rank in [0, 2, 3] {
        let [fault, this, missing, slot, epoch, _] = group.status(rank)[..6] else { unreachable!() };
        assert_eq!((fault, this, missing, epoch), (1, rank as u32, 1, 0), "{schedule:?}");
        assert!(slot < 3);
        assert_eq!(group.host_status(rank)[..5], group.status(rank)[..5]);
        for call in &calls {
            let norm_out = call.outputs[rank][1].as_slice::<u16>().unwrap();
            assert!(norm_out.iter().all(|&bits| bits == 0x7FFF), "outputs of a failed launch are NaN");
        }
    }
}

#[test]
fn a_rank_that_never_comes_ends_in_a_fault_at_once() {
    without_rank_1(Schedule::OneShot, 1024);
}

/// Ranks 0, 2 and 3 own a block each: all of them know who has not sent a slice, also where a sum was waited for.
#[test]
fn owners_name_the_rank_that_never_comes() {
    without_rank_1(Schedule::Owner, 1024);
}

/// The size that must take at most 2 s on two cores, with room for a machine that is slow or busy.
#[test]
fn eight_ranks_take_seconds() {
    let program = program(K25, 7168, 8, 8, Presence::ALL);
    let workload = Workload::new(&program, 8, 1, Kind::Ordinary);
    let expected = reference::run(&program, &workload.inputs(), 8).unwrap();
    let orders = [Order::Forward, Order::Reverse, Order::Random(1)];
    for (order, schedule) in orders.into_iter().flat_map(|order| EXCHANGING.map(|s| (order, s))) {
        let mut group = Group::of(schedule, program.clone(), 8);
        let mut calls = [group.call(&workload)];
        let start = Instant::now();
        let report = group.run(&mut calls, &Options::new(order)).unwrap_or_else(|e| panic!("{e}"));
        println!("{schedule:?}, {order}: {:?}, {report:?}", start.elapsed());
        assert!(start.elapsed() < Duration::from_secs(20));
        assert_eq!(calls[0].difference(&group.program, &expected), None);
    }
}
