//! Phases and launch geometry.

use seamline_codegen::parse::parse_file;
use seamline_codegen::phases::Phases;
use seamline_codegen::program::{Inst, Program};
use seamline_codegen::schedule::{
    DeviceModel, Geometry, Outbox, Planner, Schedule, Traffic, launches_at_once,
};
use seamline_codegen::{DType, Dims, Graph, MAX_TOKENS, Presence, Request};

fn graph(signature_and_body: &str) -> Graph {
    let source = format!("#[fused_pattern] fn pattern{signature_and_body}");
    parse_file(&source).unwrap_or_else(|e| panic!("{e}")).remove(0)
}

fn bind(graph: &Graph, hidden: u32, ranks: u32) -> Program {
    let request = Request { hidden: Some(hidden), top_k: Some(8), dtype: Some(DType::Bf16), ranks };
    graph.bind(&Dims::bind(graph, &request, Presence::ALL).unwrap()).unwrap()
}

const KIMI: &str =
    "(rows: Permuted, map: RowMap, weights: ExpertWeights<f32>, shared: Option<Tokens>, residual: Tokens,
    gamma: Channels, eps: Scalar) -> (Tokens, Tokens) {
    let local = finalize(rows, map, weights) + shared;
    let residual_out = all_reduce(local) + residual;
    let norm_out = rms_norm(residual_out, gamma, eps);
    (residual_out, norm_out)
}";

/// The names of what phase `at` computes per channel.
fn names(program: &Program, phases: &Phases, at: usize) -> Vec<String> {
    phases.phases[at].lanes.iter().filter_map(|r| program.line(*r).name.clone()).collect()
}

#[test]
fn exchange_and_row_sum_end_a_phase_each() {
    let program = bind(&graph(KIMI), 7168, 8);
    let phases = Phases::of(&program);
    assert_eq!(phases.phases.len(), 3);
    assert_eq!(phases.exchange, Some(0));
    assert_eq!(phases.phases.iter().map(|p| p.sums.len()).collect::<Vec<_>>(), [0, 1, 0]);
    assert_eq!(names(&program, &phases, 0)[0], "local");
    assert!(names(&program, &phases, 2).contains(&"norm_out".to_string()));
}

#[test]
fn one_rank_has_no_exchange() {
    let program = bind(&graph(KIMI), 7168, 1);
    let phases = Phases::of(&program);
    assert_eq!(phases.exchange, None);
    assert_eq!(phases.phases.len(), 2);
    assert!(program.lines.iter().all(|l| !matches!(l.inst, Inst::AllReduce(_))));
}

#[test]
fn only_the_rounded_residual_lives_on() {
    let program = bind(&graph(KIMI), 7168, 8);
    let phases = Phases::of(&program);
    let live = phases.live(&program);
    assert_eq!(live.len(), 1);
    assert!(matches!(program.line(live[0]).inst, Inst::Round(_, DType::Bf16)));
    assert!(!phases.crosses_exchange(&program));
}

#[test]
fn weight_arithmetic_waits_for_its_phase() {
    let program = bind(
        &graph(
            "(x: Tokens, w: Channels, eps: Scalar) -> Tokens { let y = rms_norm(all_reduce(x), 1.0 + w, eps); y }",
        ),
        4096,
        2,
    );
    let phases = Phases::of(&program);
    let (weight, _) =
        program.regs().find(|(_, l)| matches!(l.inst, Inst::Add(..)) && l.space.has_channels()).unwrap();
    assert_eq!(phases.phase(weight), Some(2));
    assert_eq!(phases.live(&program).len(), 0, "the exchanged value is kept by the schedule");
}

#[test]
fn norm_before_the_collective_is_a_phase_before_it() {
    let program = bind(
        &graph(
            "(x: Tokens, r: Tokens, w: Channels, v: Channels, eps: Scalar) -> (Tokens, Tokens) {
                let s = all_reduce(rms_norm(x, w, eps)) + r; let n = rms_norm(s, v, eps); (s, n) }",
        ),
        4096,
        2,
    );
    let phases = Phases::of(&program);
    assert_eq!(phases.exchange, Some(1));
    assert_eq!(phases.phases.iter().map(|p| p.sums.len()).collect::<Vec<_>>(), [1, 0, 1, 0]);
}

#[test]
fn value_needed_on_both_sides_of_the_exchange_forbids_waves() {
    let program = bind(
        &graph("(x: Tokens, y: Tokens) -> Tokens { let l = x * y; let s = all_reduce(l) + l; s }"),
        4096,
        2,
    );
    assert!(Phases::of(&program).crosses_exchange(&program));
    let planner = Planner::new(&program, DeviceModel::H200, 2, false);
    let most = planner.tokens_per_launch();
    assert!(most < 1000);
    assert!((1..=most).all(|t| !planner.shape(t).geometry.waves));
}

#[test]
fn row_sum_beside_the_exchange_forbids_waves() {
    for body in ["all_reduce(x) + rms_norm(x, w, eps)", "rms_norm(x, w, eps) * all_reduce(x * w)"] {
        let source = format!("(x: Tokens, w: Channels, eps: Scalar) -> Tokens {{ let y = {body}; y }}");
        let program = bind(&graph(&source), 4096, 2);
        assert!(Phases::of(&program).crosses_exchange(&program), "{body}");
        let planner = Planner::new(&program, DeviceModel::H200, 2, false);
        assert!((1..=planner.tokens_per_launch()).all(|t| !planner.shape(t).geometry.waves));
    }
}

#[test]
fn input_overwritten_before_the_exchange_and_read_after_it_forbids_waves() {
    let body = |after: &str| {
        let source = format!(
            "(x: Tokens, mut r: Tokens) -> (Tokens, Tokens) {{ let old = r; r += x; let s = all_reduce(x) + {after}; (r, s) }}"
        );
        bind(&graph(&source), 4096, 2)
    };
    let (old, other) = (body("old"), body("x"));
    assert!(Phases::of(&old).crosses_exchange(&old));
    assert!(!Phases::of(&other).crosses_exchange(&other));
}

/// The schedules of several ranks.
const EXCHANGING: [Schedule; 2] = [Schedule::OneShot, Schedule::Owner];

/// Each lane of a row belongs to exactly one thread, and no CTA is idle.
fn covers(geometry: &Geometry, hidden: u32) {
    let lanes = hidden.div_ceil(8);
    let held = |ctas: u32| ctas * geometry.threads * geometry.vectors;
    assert!(held(geometry.ctas) >= lanes, "{geometry:?} is too small for {hidden}");
    assert!(held(geometry.ctas - 1) < lanes, "{geometry:?} has an idle CTA at {hidden}");
    assert_eq!(geometry.threads % 32, 0);
    assert!(geometry.threads <= 1024 && geometry.ctas <= 8 && geometry.batch >= 1);
    assert!(geometry.threads * geometry.blocks_per_sm <= 2048);
}

#[test]
fn every_hidden_size_is_dealt_completely() {
    let graph = graph(KIMI);
    let sizes =
        (1..=600).chain([1024, 2048, 2688, 2880, 4096, 5120, 6144, 7168, 8192, 16384, 32768, 65528, 65536]);
    for hidden in sizes {
        for ranks in [1, 2, 8] {
            let program = bind(&graph, hidden, ranks);
            for ranks_per_device in [1, ranks] {
                let planner = Planner::new(&program, DeviceModel::H200, ranks_per_device, true);
                for tokens in [1, 2, 7, 16, 33, 64, 129, 4096] {
                    covers(&planner.shape(tokens).geometry, hidden);
                }
            }
        }
    }
}

#[test]
fn grids_that_poll_are_resident_together() {
    let device = DeviceModel::H200;
    let graph = graph(KIMI);
    for hidden in [1024, 2880, 4096, 7168, 8192] {
        for (ranks, early) in [(2, false), (2, true), (8, false), (8, true)] {
            let program = bind(&graph, hidden, ranks);
            let planner = Planner::new(&program, device, ranks, early);
            for (tokens, schedule) in (1..=200).flat_map(|t| EXCHANGING.map(|schedule| (t, schedule))) {
                let shape = planner.clone().with_schedules([(1, schedule)]).shape(tokens);
                let g = shape.geometry;
                assert_eq!(g.schedule, schedule);
                let ctas = shape.clusters * g.ctas * ranks * if early { 2 } else { 1 };
                assert!(ctas <= device.sms * g.blocks_per_sm, "{tokens} tokens: {shape:?}");
                assert_eq!(g.waves, u64::from(shape.clusters) < tokens);
            }
        }
    }
}

#[test]
fn grids_of_forks_are_one_block_per_multiprocessor_together() {
    let device = DeviceModel::H200;
    let graph = graph(KIMI);
    for hidden in [64, 1024, 2880, 7168, 32768] {
        for (ranks, ranks_per_device, forks, early) in
            [(2, 1, 1, false), (8, 1, 1, true), (2, 2, 1, false), (4, 4, 2, true), (8, 8, 3, true)]
        {
            let program = bind(&graph, hidden, ranks);
            let planner = Planner::new(&program, device, ranks_per_device, early).with_forks(forks);
            let launches = launches_at_once(ranks_per_device, forks, early);
            assert_eq!(launches, ranks_per_device * (1 + forks) * if early { 2 } else { 1 });
            for tokens in 1..=200 {
                let shape = planner.shape(tokens);
                let ctas = shape.clusters * shape.geometry.ctas * launches;
                assert!(ctas <= device.sms, "{tokens} tokens: {shape:?}");
                assert_eq!(shape.geometry.waves, u64::from(shape.clusters) < tokens);
            }
        }
    }
}

#[test]
fn forks_change_nothing_for_one_rank() {
    let program = bind(&graph(KIMI), 7168, 1);
    assert_eq!(launches_at_once(1, 0, true), 1);
    let planner = Planner::new(&program, DeviceModel::H200, 1, false);
    let forked = planner.clone().with_forks(3);
    assert_eq!(planner.ranges(4096), forked.ranges(4096));
}

#[test]
fn geometries_are_all_that_shape_can_answer() {
    let graph = graph(KIMI);
    for (hidden, ranks, ranks_per_device) in
        [(7168, 1, 1), (7168, 8, 8), (7168, 8, 1), (2880, 4, 4), (64, 2, 2)]
    {
        let program = bind(&graph, hidden, ranks);
        for early in [false, true] {
            let planner = Planner::new(&program, DeviceModel::H200, ranks_per_device, early);
            for planner in [planner.clone(), planner.with_forks(1)] {
                let listed = planner.geometries(600);
                let mut met: Vec<Geometry> = Vec::new();
                for tokens in 1..=600 {
                    let geometry = planner.shape(tokens).geometry;
                    if !met.contains(&geometry) {
                        met.push(geometry);
                    }
                }
                assert_eq!(listed, met);
            }
        }
    }
}

#[test]
fn more_tokens_than_a_launch_can_have_are_taken_as_the_most() {
    let program = bind(&graph(KIMI), 64, 8);
    for ranks_per_device in [1, 8] {
        let planner = Planner::new(&program, DeviceModel::H200, ranks_per_device, false);
        assert_eq!(planner.shape(u64::MAX), planner.shape(MAX_TOKENS));
        assert_eq!(planner.ranges(u64::MAX), planner.ranges(MAX_TOKENS));
    }
}

#[test]
fn no_size_of_a_device_or_a_group_is_too_much() {
    let program = bind(&graph(KIMI), 7168, 8);
    for sms in [0, 1, u32::MAX / 4, u32::MAX] {
        for (ranks_per_device, forks) in [(0, 0), (1, 1), (u32::MAX, 0), (u32::MAX, u32::MAX)] {
            let device = DeviceModel { capability: (9, 0), sms };
            let planner = Planner::new(&program, device, ranks_per_device, true).with_forks(forks);
            for range in planner.ranges(u64::MAX) {
                covers(&range.geometry, 7168);
                let shape = planner.shape(range.up_to);
                assert_eq!(shape.geometry.waves, u64::from(shape.clusters) < range.up_to, "{shape:?}");
            }
            assert!((1..=MAX_TOKENS).contains(&planner.tokens_per_launch()));
        }
    }
}

#[test]
fn more_row_sums_than_shared_memory_holds_are_refused() {
    let sums = |count: usize, hidden| {
        let more: String = (1..count).map(|i| format!("let y = y + rms_norm(x * {i}.5, w, eps);")).collect();
        let graph = graph(&format!(
            "(x: Tokens, w: Channels, eps: Scalar) -> Tokens {{ let y = rms_norm(x, w, eps); {more} y }}"
        ));
        let request = Request { hidden: Some(hidden), top_k: None, dtype: Some(DType::Bf16), ranks: 1 };
        graph.bind(&Dims::bind(&graph, &request, Presence::ALL).unwrap())
    };
    assert_eq!(Phases::of(&sums(24, 65536).unwrap()).most_sums(), 24);
    assert_eq!(
        sums(25, 65536).unwrap_err().to_string(),
        "`pattern` needs 25 row sums at once, and shared memory holds 24 for hidden = 65536: split it in two patterns"
    );
    assert!(sums(25, 7168).is_ok());
}

#[test]
fn a_group_of_another_size_than_the_attribute_says_is_told_what_to_do() {
    let source = "#[fused_pattern(ranks = 8)] fn pattern(x: Tokens) -> Tokens { let y = all_reduce(x); y }";
    let graph = parse_file(source).unwrap().remove(0);
    let request = Request { hidden: Some(8), top_k: None, dtype: Some(DType::Bf16), ranks: 2 };
    assert_eq!(
        Dims::bind(&graph, &request, Presence::ALL).unwrap_err().to_string(),
        "`ranks` of `pattern` is fixed to 8 by its attribute, and the group has 2: prepare it for a group of 8, or leave `ranks` out of the attribute"
    );
}

#[test]
fn a_schedule_that_cannot_run_a_program_says_why() {
    let graph = graph(KIMI);
    let (alone, several) = (bind(&graph, 7168, 1), bind(&graph, 7168, 8));
    assert_eq!((Schedule::of(&alone), Schedule::of(&several)), (Schedule::Local, Schedule::OneShot));
    for schedule in EXCHANGING {
        assert_eq!(schedule.refusal(&several), None);
        assert!(schedule.refusal(&alone).unwrap().contains("take `local`"));
    }
    assert_eq!(Schedule::Local.refusal(&alone), None);
    assert!(Schedule::Local.refusal(&several).unwrap().contains("take `one_shot` or `owner`"));
}

#[test]
fn schedules_chosen_by_hand_serve_from_so_many_tokens_on() {
    let program = bind(&graph(KIMI), 7168, 8);
    let planner = Planner::new(&program, DeviceModel::H200, 8, false);
    let mixed = planner.clone().with_schedules([(5, Schedule::OneShot), (2, Schedule::Owner)]);
    let expected = [(1, Schedule::OneShot), (2, Schedule::Owner), (5, Schedule::OneShot)];
    assert_eq!(mixed.schedules(), expected);
    for tokens in 1..=300 {
        let schedule = if (2..5).contains(&tokens) { Schedule::Owner } else { Schedule::OneShot };
        assert_eq!(mixed.schedule(tokens), schedule);
        let alone = planner.clone().with_schedules([(1, schedule)]);
        assert_eq!(mixed.shape(tokens), alone.shape(tokens));
    }
    let ranges = mixed.ranges(300);
    let mut from = 1;
    for range in &ranges {
        assert_eq!(range.from, from);
        assert!((range.from..=range.up_to).all(|t| mixed.shape(t).geometry == range.geometry));
        from = range.up_to + 1;
    }
    assert_eq!(from, 301);
    // A geometry of one_shot serves before and after the owner's, and is compiled once.
    let geometries = mixed.geometries(300);
    assert!(geometries.iter().enumerate().all(|(i, g)| !geometries[..i].contains(g)), "{geometries:?}");
    assert_eq!(planner.with_schedules([(0, Schedule::Owner)]).schedules(), [(1, Schedule::Owner)]);
}

#[test]
fn what_all_ranks_send_all_receive() {
    let graph = graph(KIMI);
    for hidden in [1, 8, 256, 264, 1000, 2880, 7168] {
        for (ranks, schedule) in (2..=8).flat_map(|n| EXCHANGING.map(|schedule| (n, schedule))) {
            let program = bind(&graph, hidden, ranks);
            let all = (0..ranks).map(|rank| schedule.traffic(&program, rank));
            let (sent, received) = all.fold((0, 0), |(s, r), t| (s + t.sent, r + t.received));
            assert_eq!(sent, received, "{schedule:?} H={hidden} N={ranks}");
        }
    }
}

#[test]
fn owner_sends_less_than_three_rows_where_one_shot_sends_seven() {
    let program = bind(&graph(KIMI), 7168, 8);
    let row = 2 * 7168;
    assert_eq!(Schedule::OneShot.traffic(&program, 0), Traffic { sent: 7 * row, received: 7 * row });
    // 24 of 28 blocks in bf16, and 4 blocks in f32 to 7 ranks.
    assert_eq!(Schedule::Owner.traffic(&program, 0).sent, 24 * 512 + 7 * 4 * 1024);
    // Ranks 4 to 7 own three.
    assert_eq!(Schedule::Owner.traffic(&program, 7).sent, 25 * 512 + 7 * 3 * 1024);
}

#[test]
fn every_word_of_a_region_has_one_writer() {
    let graph = graph(KIMI);
    for (hidden, ranks) in [(7168, 8), (1000, 3), (40, 4)] {
        let program = bind(&graph, hidden, ranks);
        for schedule in EXCHANGING {
            let layout = schedule.layout(&program);
            let mut written = vec![0; layout.bytes(2) as usize / 16];
            for outbox in (0..ranks).flat_map(|rank| layout.outboxes(rank, 2).collect::<Vec<_>>()) {
                let Outbox { start, bytes, piece, stride } = outbox;
                for at in (0..bytes).step_by(16).filter(|at| at % stride < piece) {
                    written[(start + at) as usize / 16] += 1;
                }
            }
            assert!(written.iter().all(|times| *times == 1), "{schedule:?} H={hidden} N={ranks}");
        }
    }
    // As much as two hops need, rows filled up to a whole number of blocks for each rank.
    let program = bind(&graph, 7168, 8);
    assert_eq!(Schedule::OneShot.layout(&program).bytes(128), 3 * 128 * 8 * 14336);
    assert_eq!(Schedule::Owner.layout(&program).bytes(128), 3 * 128 * 32 * (512 + 1024));
}
