//! Which streams ranks may be on, and what is prepared or dropped while their kernels run.

use super::patterns::Seam;
use super::support::{Fixture, Gpu, RankMemory, gpu};
use seamline::prelude::*;
use seamline::testing::Runner;
use seamline::{Error, ErrorKind};
use seamline_codegen::Presence;
use seamline_codegen::program::Program;
use seamline_codegen::reference::{self, RankOutputs};
use seamline_codegen::workload::{Kind, Workload};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Two ranks, and a launch to be.
struct Two {
    fixture: Fixture,
    program: Program,
    memory: Vec<RankMemory>,
    expected: Vec<RankOutputs>,
}

impl Two {
    fn new(gpu: &Gpu) -> Two {
        let fixture = Fixture::new(gpu, Seam::GRAPH, 2, 2048, 8, &Prepare::new(8).timeout(TIMEOUT));
        let program = fixture.program(Presence::ALL);
        let workload = Workload::new(&program, 8, 3, Kind::Ordinary);
        let (memory, expected) = (fixture.memory(&program, &workload), fixture.expected(&program, &workload));
        Two { fixture, program, memory, expected }
    }

    fn launch<'q>(&'q self, rank: usize, queue: impl Into<Queue<'q>>) -> Result<(), Error> {
        self.fixture.kernels[rank].launch(queue, (8, self.memory[rank].args(&self.program)))
    }

    fn compare(&self, what: &str) {
        self.fixture.compare(what, &self.program, &self.expected, 8, &self.memory);
    }
}

#[test]
fn ranks_that_launch_one_by_one_do_not_share_a_stream() {
    let Some(gpu) = gpu() else { return };
    let two = Two::new(&gpu);
    let [first, second] = [0, 1].map(|rank| &two.fixture.streams[rank]);
    two.launch(0, first).unwrap();
    for error in [two.launch(1, first).unwrap_err(), two.fixture.ranks[1].move_to(first).unwrap_err()] {
        assert!(matches!(error.kind(), ErrorKind::SharedStream { first: 0, second: 1, .. }), "{error}");
    }
    // SAFETY: the launch is refused.
    let per_thread = unsafe { Queue::raw(2 as *mut std::ffi::c_void) };
    let error = two.launch(1, per_thread).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::PerThreadStream), "{error}");
    // None of these has put the rank anywhere.
    two.launch(1, second).unwrap();
    two.compare("on streams of their own");
}

#[test]
fn a_refused_launch_leaves_the_rank_free() {
    let Some(gpu) = gpu() else { return };
    let two = Two::new(&gpu);
    let elsewhere = gpu.context.new_stream().unwrap();
    let mut args = two.memory[0].args(&two.program);
    let output = two.memory[0].outputs[0].output();
    // Two outputs in one place.
    *args.last_mut().unwrap() = seamline::args::Arg::Output(output);
    let error = two.fixture.kernels[0].launch(&elsewhere, (8, args)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Overlap { .. }), "{error}");
    two.fixture.launch(&two.program, &two.memory, 8).unwrap();
    two.compare("after a launch that was refused elsewhere");
}

#[test]
fn a_kernel_is_prepared_while_a_rank_polls() {
    let Some(gpu) = gpu() else { return };
    let two = Two::new(&gpu);
    two.launch(0, &two.fixture.streams[0]).unwrap();
    let began = Instant::now();
    // The same code, and exchange memory of its own, which must be filled.
    let options =
        Prepare::new(8).timeout(TIMEOUT).hidden(2048).top_k(8).dtype(DType::Bf16).exchange_tokens(64);
    Seam::prepare_all(&two.fixture.ranks, &options).unwrap();
    assert!(began.elapsed() < TIMEOUT / 2, "{:?}: it has waited for the launch", began.elapsed());
    two.launch(1, &two.fixture.streams[1]).unwrap();
    two.compare("after another kernel was prepared");
}

#[test]
fn what_is_dropped_right_after_a_launch_still_runs() {
    let Some(gpu) = gpu() else { return };
    for round in 0..20 {
        let mut two = Two::new(&gpu);
        for _ in 0..50 {
            two.fixture.launch(&two.program, &two.memory, 8).unwrap();
        }
        two.fixture.kernels.clear();
        two.fixture.ranks.clear();
        two.compare(&format!("round {round}"));
    }
}

#[test]
fn runners_of_one_group_take_turns() {
    let Some(gpu) = gpu() else { return };
    let ranks = Group::loopback(&gpu.context, 2).unwrap();
    let options = Prepare::new(8).hidden(2048).top_k(8).dtype(DType::Bf16);
    // Each has streams of its own.
    let runners = [0, 1].map(|_| Runner::new(Seam::GRAPH, &ranks, &options).unwrap());
    let program = runners[0].variants()[0].program();
    for turn in 0..4 {
        let workload = Workload::new(program, 8, turn as u64, Kind::Ordinary);
        let expected = reference::run(program, &workload.inputs(), 8).unwrap();
        let ran = runners[turn % 2].run(program, &workload).unwrap();
        for (got, expected) in ran.outputs.iter().zip(&expected) {
            assert!(*got == expected.outputs, "turn {turn}");
        }
    }
}
