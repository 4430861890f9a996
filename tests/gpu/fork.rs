//! A group and its fork on one device, with nothing that orders their launches: two batches in flight.
//!
//! Forks are also the one way to ask for more than fits. Without them the planner never asks for more than
//! `__launch_bounds__` promises, and a whole GPU keeps that: there, `ErrorKind::Residency` is for partitions and for
//! limits that others set. The decision itself is tested in `runtime/src/cuda/residency.rs`.

use super::patterns::{InPlace, Seam};
use super::support::{Fixture, Gpu, RankMemory, gpu};
use seamline::prelude::*;
use seamline::{ErrorKind, Schedule};
use seamline_codegen::Presence;
use seamline_codegen::program::Program;
use seamline_codegen::reference::RankOutputs;
use seamline_codegen::workload::{Kind, Workload};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Rows of four CTAs, of two, of one, and in waves.
const MOST: usize = 64;

/// A group with a batch to launch again and again.
struct Batch {
    fixture: Fixture,
    program: Program,
    memory: Vec<RankMemory>,
    expected: Vec<RankOutputs>,
}

/// A group of two ranks and its fork, each with another batch; the fork by another schedule.
fn two_batches(gpu: &Gpu, timeout: Duration) -> [Batch; 2] {
    let ranks = Group::loopback(&gpu.context, 2).unwrap();
    let forks = ranks.iter().map(Rank::fork).collect::<Result<Vec<_>, _>>().unwrap();
    let mut seed = 0;
    let schedules = [(ranks, timeout, Schedule::OneShot), (forks, TIMEOUT, Schedule::Owner)];
    schedules.map(|(ranks, timeout, schedule)| {
        seed += 1;
        let options = Prepare::new(MOST).timeout(timeout).variants(&[&[]]).schedule(schedule);
        let fixture = Fixture::on(gpu, Seam::GRAPH, ranks, (1024, 4, DType::Bf16), &options);
        let program = fixture.program(Presence::ALL);
        let workload = Workload::new(&program, MOST, seed, Kind::Ordinary);
        let (memory, expected) = (fixture.memory(&program, &workload), fixture.expected(&program, &workload));
        Batch { fixture, program, memory, expected }
    })
}

impl Batch {
    fn launch(&self, tokens: usize) {
        self.fixture.launch(&self.program, &self.memory, tokens).unwrap();
    }

    fn launch_rank(&self, rank: usize, tokens: usize) {
        let args = self.memory[rank].args(&self.program);
        self.fixture.kernels[rank].launch(&self.fixture.streams[rank], (tokens, args)).unwrap();
    }

    /// What the launches so far have stored is gone, so that it cannot stand in for what the next one does.
    fn clear(&mut self) {
        self.memory.iter_mut().zip(&self.fixture.streams).for_each(|(memory, stream)| memory.clear(stream));
    }

    fn compare(&self, what: &str, tokens: usize) {
        self.fixture.compare(what, &self.program, &self.expected, tokens, &self.memory);
    }

    fn launch_and_compare(&mut self, what: &str, tokens: usize) {
        self.clear();
        self.launch(tokens);
        self.compare(what, tokens);
    }
}

/// From 1 to `MOST`, in an order of its own for every `stride`.
fn tokens(launch: usize, stride: usize) -> usize {
    1 + launch * stride % MOST
}

#[test]
fn two_batches_are_in_flight_together() {
    const LAUNCHES: usize = 100;
    let Some(gpu) = gpu() else { return };
    let mut batches = two_batches(&gpu, TIMEOUT);
    for round in 0..4 {
        for launch in round * LAUNCHES..(round + 1) * LAUNCHES {
            batches[0].launch(tokens(launch, 7));
            batches[1].launch(tokens(launch, 27));
        }
        // Queued behind those, and compared when both are on their way.
        let last = [tokens(round, 19), tokens(round, 45)];
        batches.iter_mut().zip(last).for_each(|(batch, tokens)| {
            batch.clear();
            batch.launch(tokens);
        });
        for (i, (batch, tokens)) in batches.iter().zip(last).enumerate() {
            batch.compare(&format!("round {round}, batch {i}"), tokens);
        }
    }
}

#[test]
fn a_thread_each_drives_the_batches() {
    const LAUNCHES: usize = 300;
    let Some(gpu) = gpu() else { return };
    // They end here, not in the threads: a group ends by waiting for the device, and with it for the other batch.
    let mut batches = two_batches(&gpu, TIMEOUT);
    std::thread::scope(|scope| {
        for (i, batch) in batches.iter_mut().enumerate() {
            scope.spawn(move || {
                (0..LAUNCHES).for_each(|launch| batch.launch(tokens(launch, 5 + 8 * i)));
                batch.launch_and_compare(&format!("batch {i}"), MOST - i);
            });
        }
    });
}

#[test]
fn a_fork_runs_while_the_group_waits_for_a_rank() {
    let Some(gpu) = gpu() else { return };
    let [group, mut fork] = two_batches(&gpu, TIMEOUT);
    let began = Instant::now();
    group.launch_rank(0, MOST);
    (0..50).for_each(|launch| fork.launch(tokens(launch, 11)));
    fork.launch_and_compare("beside a rank that polls", MOST);
    group.launch_rank(1, MOST);
    group.compare("after the fork", MOST);
    assert!(began.elapsed() < TIMEOUT / 2, "{:?}: one has waited for the other", began.elapsed());
}

#[test]
fn both_may_share_streams_in_one_order() {
    let Some(gpu) = gpu() else { return };
    let mut batches = two_batches(&gpu, TIMEOUT);
    batches[1].fixture.streams = batches[0].fixture.streams.clone();
    for launch in 0..50 {
        batches.iter().for_each(|batch| batch.launch(tokens(launch, 13)));
    }
    batches.iter_mut().for_each(|batch| batch.launch_and_compare("on the same streams", MOST));
}

#[test]
fn a_fault_and_a_reset_are_one_groups() {
    let Some(gpu) = gpu() else { return };
    let [mut group, mut fork] = two_batches(&gpu, Duration::from_millis(100));
    // The other rank never comes.
    group.launch_rank(0, 5);
    (0..30).for_each(|launch| fork.launch(tokens(launch, 9)));
    group.fixture.wait();
    let fault = group.fixture.ranks[0].status().unwrap().fault.expect("a fault");
    assert_eq!((fault.rank, fault.peer), (0, 1), "{fault}");
    fork.launch_and_compare("after the group's fault", 17);
    seamline::reset(&group.fixture.ranks).unwrap();
    for round in 0..10 {
        group.launch_and_compare(&format!("launch {round} after the reset"), tokens(round, 21));
        fork.launch_and_compare(&format!("launch {round} after the group's reset"), tokens(round, 15));
    }
}

#[test]
fn a_fork_compiles_nothing_again() {
    let Some(gpu) = gpu() else { return };
    let ranks = Group::loopback(&gpu.context, 2).unwrap();
    let forks = ranks.iter().map(Rank::fork).collect::<Result<Vec<_>, _>>().unwrap();
    // Dims of its own, so that nothing is compiled yet.
    let options = Prepare::new(1).hidden(72).dtype(DType::Bf16);
    let prepare = |ranks: &[Rank]| {
        let kernels = InPlace::prepare_all(ranks, &options).unwrap();
        (kernels[0].explain(1), seamline::testing::compile_count())
    };
    let before = seamline::testing::compile_count();
    let (group, fork) = (prepare(&ranks), prepare(&forks));
    assert_eq!(group.1, before + 1);
    assert_eq!(group, fork);
}

#[test]
fn more_forks_than_the_device_has_room_for() {
    let Some(gpu) = gpu() else { return };
    let ranks = Group::loopback(&gpu.context, 4).unwrap();
    let sms = ranks[0].device().sms;
    let forks = sms / 4;
    for _ in 0..forks {
        ranks.iter().for_each(|rank| drop(rank.fork().unwrap()));
    }
    let options = Prepare::new(1).hidden(64).dtype(DType::Bf16);
    let error = InPlace::prepare_all(&ranks, &options).unwrap_err();
    let ErrorKind::Residency { ranks: 4, forks: taken, tokens: 1, ctas: 1, needed, available, .. } =
        error.kind()
    else {
        panic!("{error}");
    };
    assert_eq!((*taken, *needed), (forks, u64::from(4 * (forks + 1))));
    assert!(*available <= u64::from(sms), "{error}");
    assert!(error.to_string().contains("use fewer ranks or forks"), "{error}");
}
