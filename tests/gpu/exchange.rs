//! The exchange from launch to launch: changing tokens, regions that are too small, graphs, streams, faults.

use super::patterns::{InPlace, Seam};
use super::support::{Fixture, Gpu, gpu};
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use seamline::prelude::*;
use seamline::{ErrorKind, Schedule};
use seamline_codegen::Presence;
use seamline_codegen::workload::{Kind, Workload};
use std::time::{Duration, Instant};

/// Options for so many tokens, with and without waiting for what an owner publishes, and both in one kernel.
fn by_each_schedule(tokens: usize) -> [Prepare; 3] {
    let options = || Prepare::new(tokens);
    [options(), options().schedule(Schedule::Owner), options().schedule_from(tokens / 2, Schedule::Owner)]
}

#[test]
fn thousands_of_launches_with_changing_tokens() {
    const LAUNCHES: usize = 10_000;
    const ROUNDS: usize = 40;
    let Some(gpu) = gpu() else { return };
    for (ranks, options) in [2, 8].into_iter().flat_map(|ranks| by_each_schedule(16).map(|o| (ranks, o))) {
        let fixture = Fixture::new(&gpu, Seam::GRAPH, ranks, 2048, 4, &options);
        let program = fixture.program(Presence::ALL);
        let mut memory = fixture.memory(&program, &Workload::new(&program, 16, 0, Kind::Ordinary));
        let mut expected = Vec::new();
        for round in 0..ROUNDS {
            if round % 8 == 0 {
                let workload = Workload::new(&program, 16, round as u64, Kind::Ordinary);
                overwrite(&fixture, &mut memory, &workload);
                expected = fixture.expected(&program, &workload);
            }
            for launch in 1..LAUNCHES / ROUNDS {
                fixture.launch(&program, &memory, 1 + (round + launch) * 7 % 16).unwrap();
            }
            // What the earlier launches stored must not stand in for what this one does.
            memory.iter_mut().zip(&fixture.streams).for_each(|(m, stream)| m.clear(stream));
            let tokens = 1 + round * 5 % 16;
            fixture.launch(&program, &memory, tokens).unwrap();
            let what = format!("{options:?}, N={ranks}, round {round}");
            fixture.compare(&what, &program, &expected, tokens, &memory);
        }
    }
}

#[test]
fn more_tokens_than_the_region_holds() {
    let Some(gpu) = gpu() else { return };
    let cases = [(2, 1, 5), (4, 3, 10), (8, 16, 100)];
    let cases = cases.into_iter().flat_map(|case| [Schedule::OneShot, Schedule::Owner].map(|s| (case, s)));
    for ((ranks, slots, tokens), schedule) in cases {
        let options = Prepare::new(128).exchange_tokens(slots).schedule(schedule);
        let fixture = Fixture::new(&gpu, Seam::GRAPH, ranks, 1024, 8, &options);
        let program = fixture.program(Presence::ALL);
        assert!(fixture.kernels[0].explain(tokens).kernels >= tokens.div_ceil(slots));
        for seed in 0..3 {
            let workload = Workload::new(&program, tokens, seed, Kind::Ordinary);
            let what = format!("{schedule:?}, N={ranks}, {slots} slots, T={tokens}");
            fixture.run(&what, &program, &workload);
        }
    }
}

#[test]
fn kernels_of_one_group_share_its_memory() {
    let Some(gpu) = gpu() else { return };
    let fixture = Fixture::new(&gpu, Seam::GRAPH, 2, 2048, 8, &Prepare::new(8));
    let options = Prepare::new(8).hidden(2048).top_k(8).dtype(DType::Bf16);
    let compiled = seamline::testing::compile_count();
    let other = seamline::erased::prepare_all(Seam::GRAPH, &fixture.ranks, &options).unwrap();
    assert_eq!(seamline::testing::compile_count(), compiled, "the same kernel is compiled once");
    let program = fixture.program(Presence::ALL);
    let workload = Workload::new(&program, 8, 2, Kind::Ordinary);
    let memory = fixture.memory(&program, &workload);
    for _ in 0..50 {
        fixture.launch(&program, &memory, 8).unwrap();
        let args = memory.iter().map(|m| (5, m.args(&program)));
        seamline::erased::launch_all(&other, &fixture.streams, args).unwrap();
    }
    fixture.compare("two kernels in turn", &program, &fixture.expected(&program, &workload), 8, &memory);
}

#[test]
fn a_captured_graph_replays_with_fresh_inputs() {
    let Some(gpu) = gpu() else { return };
    let [taken, owner, both] = by_each_schedule(8);
    for (ranks, options) in [(1, taken.clone()), (4, taken), (4, owner), (4, both)] {
        let fixture = Fixture::new(&gpu, Seam::GRAPH, ranks, 4096, 8, &options);
        let program = fixture.program(Presence::ALL);
        let first = Workload::new(&program, 8, 0, Kind::Ordinary);
        let mut memory = fixture.memory(&program, &first);
        for stream in &fixture.streams {
            stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).unwrap();
        }
        // Two layers, the first of which has fewer tokens.
        fixture.launch(&program, &memory, 3).unwrap();
        fixture.launch(&program, &memory, 8).unwrap();
        let graphs: Vec<_> = fixture
            .streams
            .iter()
            .map(|s| s.end_capture(CUgraphInstantiate_flags(0)).unwrap().unwrap())
            .collect();
        let _alive: Vec<_> = fixture.kernels.iter().map(Kernel::keep_alive).collect();
        for seed in 1..20 {
            let workload = Workload::new(&program, 8, seed, Kind::Ordinary);
            overwrite(&fixture, &mut memory, &workload);
            graphs.iter().for_each(|g| g.launch().unwrap());
            fixture.compare(
                &format!("{options:?}, N={ranks}, replay {seed}"),
                &program,
                &fixture.expected(&program, &workload),
                8,
                &memory,
            );
            // Eager launches in between.
            fixture.launch(&program, &memory, 5).unwrap();
        }
    }
}

fn overwrite(fixture: &Fixture, memory: &mut [super::support::RankMemory], workload: &Workload) {
    use super::support::Device;
    use seamline_codegen::workload::Argument;
    fixture.wait();
    for (rank, memory) in memory.iter_mut().enumerate() {
        for (device, argument) in memory.inputs.iter_mut().zip(workload.rank(rank)) {
            if let (Device::Tensor(device), Argument::Tensor(buffer)) = (device, argument) {
                device.overwrite(&fixture.streams[rank], buffer);
            }
        }
    }
    fixture.wait();
}

#[test]
fn a_lazy_kernel_compiles_at_its_first_launch_but_not_in_a_capture() {
    let Some(gpu) = gpu() else { return };
    let before = seamline::testing::compile_count();
    // Dims of its own, so that nothing is compiled yet.
    let fixture = Fixture::new(&gpu, InPlace::GRAPH, 2, 1848, 0, &Prepare::new(4).lazy());
    assert_eq!(seamline::testing::compile_count(), before);
    let program = fixture.program(Presence::ALL);
    let workload = Workload::new(&program, 4, 0, Kind::Ordinary);
    let memory = fixture.memory(&program, &workload);
    for stream in &fixture.streams {
        stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).unwrap();
    }
    let error = fixture.launch(&program, &memory, 4).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::LazyCapture), "{error}");
    for stream in &fixture.streams {
        stream.end_capture(CUgraphInstantiate_flags(0)).unwrap();
    }
    fixture.launch(&program, &memory, 4).unwrap();
    fixture.compare("the first launch", &program, &fixture.expected(&program, &workload), 4, &memory);
    assert_eq!(seamline::testing::compile_count(), before + 1);
}

#[test]
fn ranks_keep_to_one_stream_until_they_are_moved() {
    let Some(gpu) = gpu() else { return };
    let mut fixture = Fixture::new(&gpu, Seam::GRAPH, 2, 2048, 8, &Prepare::new(8));
    let program = fixture.program(Presence::ALL);
    let workload = Workload::new(&program, 8, 2, Kind::Ordinary);
    let memory = fixture.memory(&program, &workload);
    fixture.launch(&program, &memory, 8).unwrap();
    let old: Vec<_> =
        fixture.streams.iter_mut().map(|s| std::mem::replace(s, gpu.context.new_stream().unwrap())).collect();
    let error = fixture.launch(&program, &memory, 8).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::SecondStream), "{error}");
    assert!(error.to_string().contains("rank.move_to(&stream)"), "{error}");
    for (rank, stream) in fixture.ranks.iter().zip(&fixture.streams) {
        rank.move_to(stream).unwrap();
    }
    drop(old);
    for _ in 0..20 {
        fixture.launch(&program, &memory, 8).unwrap();
    }
    fixture.compare("on the new streams", &program, &fixture.expected(&program, &workload), 8, &memory);
}

#[test]
fn ranks_of_one_device_need_streams_of_their_own() {
    let Some(gpu) = gpu() else { return };
    let mut fixture = Fixture::new(&gpu, Seam::GRAPH, 2, 2048, 8, &Prepare::new(8));
    fixture.streams[1] = fixture.streams[0].clone();
    let program = fixture.program(Presence::ALL);
    let memory = fixture.memory(&program, &Workload::new(&program, 8, 2, Kind::Ordinary));
    let error = fixture.launch(&program, &memory, 8).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::SharedStream { first: 0, second: 1, .. }), "{error}");
}

#[test]
fn a_rank_that_never_comes_is_a_fault_until_the_group_is_reset() {
    let Some(gpu) = gpu() else { return };
    for schedule in [Schedule::OneShot, Schedule::Owner] {
        a_rank_never_comes(&gpu, schedule);
    }
}

fn a_rank_never_comes(gpu: &Gpu, schedule: Schedule) {
    let timeout = Duration::from_millis(200);
    let options = Prepare::new(8).timeout(timeout).schedule(schedule);
    let fixture = Fixture::new(gpu, Seam::GRAPH, 3, 2048, 8, &options);
    let program = fixture.program(Presence::ALL);
    let workload = Workload::new(&program, 8, 2, Kind::Ordinary);
    let memory = fixture.memory(&program, &workload);
    let launch = |rank: usize| {
        let args = memory[rank].args(&program);
        fixture.kernels[rank].launch(&fixture.streams[rank], (8, args))
    };
    let began = Instant::now();
    // Rank 2 never comes, and 120 launches are queued behind the first that waits for it.
    for _ in 0..121 {
        launch(0).unwrap();
        launch(1).unwrap();
    }
    fixture.wait();
    let took = began.elapsed();
    assert!(took >= timeout && took < 10 * timeout, "one timeout for all of them, not {took:?}");
    for (rank, memory) in memory.iter().enumerate().take(2) {
        let fault = fixture.ranks[rank].status().unwrap().fault.expect("a fault");
        assert_eq!((fault.rank, fault.peer, fault.epoch), (rank as u32, 2, 0), "{fault}");
        let error = launch(rank).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Fault(f) if *f == fault), "{error}");
        let stored = memory.stored(&fixture.streams[rank], &program);
        assert!(stored[0].to_f32().iter().all(|x| x.is_nan()), "the outputs of a launch that failed are NaN");
    }
    assert_eq!(fixture.ranks[2].status().unwrap().fault, None);
    seamline::reset(&fixture.ranks).unwrap();
    let memory = fixture.memory(&program, &workload);
    for _ in 0..5 {
        fixture.launch(&program, &memory, 8).unwrap();
    }
    fixture.compare("after the reset", &program, &fixture.expected(&program, &workload), 8, &memory);
}

#[test]
fn a_rank_that_is_late_is_waited_for() {
    let Some(gpu) = gpu() else { return };
    for options in by_each_schedule(8) {
        let fixture = Fixture::new(&gpu, Seam::GRAPH, 4, 2048, 8, &options);
        let program = fixture.program(Presence::ALL);
        let workload = Workload::new(&program, 8, 2, Kind::Ordinary);
        let memory = fixture.memory(&program, &workload);
        for round in 0..40usize {
            for i in 0..4 {
                let rank = (round + i) % 4;
                std::thread::sleep(Duration::from_micros((round * 37 % 11 * 100) as u64));
                let args = memory[rank].args(&program);
                fixture.kernels[rank].launch(&fixture.streams[rank], (1 + round % 8, args)).unwrap();
            }
        }
        fixture.launch(&program, &memory, 8).unwrap();
        let what = format!("in any order, {options:?}");
        fixture.compare(&what, &program, &fixture.expected(&program, &workload), 8, &memory);
    }
}

#[test]
fn an_early_trigger_changes_no_bit() {
    let Some(gpu) = gpu() else { return };
    let [taken, owner, both] = by_each_schedule(8);
    for (ranks, options) in [(1, taken.clone()), (4, taken), (4, owner), (4, both)] {
        let fixture = Fixture::new(&gpu, Seam::GRAPH, ranks, 7168, 8, &options.clone().early_trigger());
        let program = fixture.program(Presence::ALL);
        let workload = Workload::new(&program, 8, 2, Kind::Ordinary);
        let memory = fixture.memory(&program, &workload);
        for launch in 0..500 {
            fixture.launch(&program, &memory, 1 + launch % 8).unwrap();
        }
        fixture.launch(&program, &memory, 8).unwrap();
        let what = format!("{options:?}, N={ranks}");
        fixture.compare(&what, &program, &fixture.expected(&program, &workload), 8, &memory);
    }
}

#[test]
fn a_launch_that_is_not_programmatic_changes_no_bit() {
    let Some(gpu) = gpu() else { return };
    for ranks in [1, 4] {
        let options = Prepare::new(8).programmatic_launch(false);
        let fixture = Fixture::new(&gpu, Seam::GRAPH, ranks, 7168, 8, &options);
        let program = fixture.program(Presence::ALL);
        let workload = Workload::new(&program, 8, 2, Kind::Ordinary);
        let memory = fixture.memory(&program, &workload);
        for launch in 0..200 {
            fixture.launch(&program, &memory, 1 + launch % 8).unwrap();
        }
        fixture.launch(&program, &memory, 8).unwrap();
        fixture.compare(&format!("N={ranks}"), &program, &fixture.expected(&program, &workload), 8, &memory);
    }
}

#[test]
fn stray_rows_are_counted() {
    let Some(gpu) = gpu() else { return };
    let fixture = Fixture::new(&gpu, Seam::GRAPH, 2, 2048, 8, &Prepare::new(8));
    let program = fixture.program(Presence::ALL);
    let workload = Workload::new(&program, 8, 2, Kind::OutOfRange);
    fixture.run("out of range", &program, &workload);
    let expected = seamline_codegen::reference::run(&program, &workload.inputs(), 8).unwrap();
    for (rank, expected) in fixture.ranks.iter().zip(expected) {
        assert!(expected.stray_rows > 0);
        assert_eq!(rank.status().unwrap().out_of_range, expected.stray_rows);
    }
}
