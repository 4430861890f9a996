//! Random patterns on random dims and devices store the bits of the reference, launch after launch.
//!
//! `SEAMLINE_FUZZ_SEEDS=123` runs the case of one seed again, `SEAMLINE_FUZZ_SEEDS=1000..5000` others than a test run does.

mod body;
#[path = "../support/group.rs"]
mod group;

use fastrand::Rng;
use group::Group;
use seamline_codegen::parse::parse_file;
use seamline_codegen::reference;
use seamline_codegen::schedule::{DeviceModel, Planner, SCHEDULES, Schedule};
use seamline_codegen::workload::{Kind, Workload};
use seamline_codegen::{Dims, ParamId, Presence, Program, Request};
use seamline_sim::{Options, Order};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use std::{fmt, thread};

/// As many as take seconds: each is built by the C++ compiler. 48 and 63 norm something beside the exchange in waves, which once
/// gave other bits.
const SEEDS: Range<u64> = 40..80;
/// No whole lane, one, and some; a warp's channels and a few more; what a cluster shares; and two lanes a thread.
const HIDDEN: [u32; 14] = [1, 7, 8, 20, 257, 260, 264, 520, 1000, 1032, 2048, 2056, 4100, 8200];

/// One after the other, on the same exchange memory.
const LAUNCHES: usize = 6;

/// What one seed stands for.
struct Case {
    seed: u64,
    source: String,
    program: Program,
    device: DeviceModel,
    /// Of launches one after the other, and what their inputs are.
    launches: Vec<(usize, Kind)>,
    options: Options,
}

impl Case {
    fn new(seed: u64) -> Result<Case, String> {
        let mut rng = Rng::with_seed(seed);
        let source = body::pattern(rng.fork());
        let invalid = |e: &dyn fmt::Display| format!("seed {seed}: {e}\n{source}");
        let graph = parse_file(&source).map_err(|e| invalid(&e))?.remove(0);
        let absent = graph.params.iter().enumerate().filter(|(_, p)| p.optional && rng.bool());
        let present = Presence::from_absent(absent.map(|(i, _)| ParamId(i as u32)));
        let request = Request {
            hidden: rng.choice(HIDDEN),
            top_k: Some(rng.u32(1..=22)),
            dtype: None,
            ranks: if graph.has_collective() { rng.choice([1, 2, 2, 3, 3, 4, 8]).unwrap() } else { 1 },
        };
        let program = Dims::bind(&graph, &request, present).and_then(|dims| graph.bind(&dims));
        let program = program.map_err(|e| invalid(&e))?;
        let device = DeviceModel { sms: rng.choice([1, 1, 1, 2, 132]).unwrap(), ..DeviceModel::H200 };
        // As the runtime does: what crosses the exchange takes several launches instead.
        let most = Planner::new(&program, device, 1, true).tokens_per_launch().min(rng.u64(1..=30)) as usize;
        let kinds =
            [Kind::Ordinary, Kind::Ordinary, Kind::KIMI_K2_EXPERT_PARALLEL].into_iter().chain(Kind::HOSTILE);
        let kinds = kinds.collect::<Vec<_>>();
        let mut launches = vec![(most, Kind::Ordinary)];
        launches
            .extend((1..LAUNCHES).map(|_| (rng.usize(1..=most), rng.choice(kinds.iter().copied()).unwrap())));
        let order = match rng.u8(..6) {
            0 => Order::Forward,
            1 => Order::Reverse,
            _ => Order::Random(seed),
        };
        let late = rng.u32(..program.dims.ranks * 2);
        let options = match late < program.dims.ranks {
            true => Options::new(order).delay(late, Duration::from_millis(1)),
            false => Options::new(order),
        };
        Ok(Case { seed, source, program, device, launches, options })
    }

    /// Whether a launch was in waves, unless something is wrong.
    fn run(&self) -> Result<bool, String> {
        let _replay = Replay(self);
        self.compare().map_err(|wrong| format!("{self}{wrong}"))
    }

    /// By every schedule that serves the program.
    fn compare(&self) -> Result<bool, String> {
        let mut waves = false;
        for schedule in SCHEDULES.iter().map(|def| def.schedule) {
            if schedule.refusal(&self.program).is_none() {
                let compared = self.compare_by(schedule);
                waves |= compared.map_err(|wrong| format!("{}: {wrong}", schedule.name()))?;
            }
        }
        Ok(waves)
    }

    fn compare_by(&self, schedule: Schedule) -> Result<bool, String> {
        let program = &self.program;
        let most = self.launches[0].0 as u64;
        let group = Group::scheduled(self.device, schedule, program.clone(), most, |source| source);
        let mut group = group.map_err(|e| e.to_string())?;
        let seeds = self.seed * 100..;
        let workloads = self.launches.iter().zip(seeds);
        let workloads = workloads.map(|(&(tokens, kind), seed)| Workload::new(program, tokens, seed, kind));
        let workloads = workloads.collect::<Vec<_>>();
        let mut calls = workloads.iter().map(|w| group.call(w)).collect::<Vec<_>>();
        let waves = calls[0].launches[0].entry.ends_with("_waves");
        group.run(&mut calls, &self.options).map_err(|e| e.to_string())?;
        let mut stray = vec![0; program.dims.ranks as usize];
        for (i, (call, workload)) in calls.iter().zip(&workloads).enumerate() {
            let expected =
                reference::run(program, &workload.inputs(), workload.tokens()).map_err(|e| e.to_string())?;
            if let Some(difference) = call.difference(program, &expected) {
                return Err(format!("launch {i}: {difference}"));
            }
            stray.iter_mut().zip(&expected).for_each(|(sum, rank)| *sum += rank.stray_rows);
        }
        for (rank, expected) in stray.into_iter().enumerate() {
            let got = u64::from(group.status(rank)[5]);
            if got != expected {
                return Err(format!("rank {rank} counted {got} rows out of range, expected {expected}"));
            }
        }
        Ok(waves)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { seed, source, program, device, launches, options } = self;
        write!(
            f,
            "SEAMLINE_FUZZ_SEEDS={seed}: {:?}, {} SMs, {options:?}, {launches:?}\n{source}",
            program.dims, device.sms
        )
    }
}

/// Says which case it was that panicked.
struct Replay<'a>(&'a Case);

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

fn seeds() -> Range<u64> {
    let Ok(chosen) = std::env::var("SEAMLINE_FUZZ_SEEDS") else { return SEEDS };
    let number =
        |text: &str| text.parse::<u64>().unwrap_or_else(|e| panic!("SEAMLINE_FUZZ_SEEDS={chosen}: {e}"));
    match chosen.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => number(&chosen)..number(&chosen) + 1,
    }
}

#[test]
fn random_patterns_store_the_references_bits() {
    let seeds = seeds();
    let (next, waves) = (AtomicU64::new(seeds.start), AtomicUsize::new(0));
    let work = || {
        let turns = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let outcomes = turns.take_while(|seed| *seed < seeds.end).map(|seed| Case::new(seed)?.run());
        let failures = outcomes.filter_map(|outcome| match outcome {
            Ok(in_waves) => {
                waves.fetch_add(in_waves.into(), Ordering::Relaxed);
                None
            }
            Err(wrong) => {
                println!("{wrong}\n");
                Some(())
            }
        });
        failures.count()
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let failures = thread::scope(|scope| {
        let workers = (0..workers).map(|_| scope.spawn(work)).collect::<Vec<_>>();
        let failures =
            workers.into_iter().map(|w| w.join().expect("the case that panicked is printed above"));
        failures.sum::<usize>()
    });
    let (patterns, waves) = (seeds.end - seeds.start, waves.into_inner());
    println!("{patterns} patterns of {LAUNCHES} launches each, {waves} of them in waves");
    assert_eq!(failures, 0, "of {patterns} patterns; they are printed above");
    if seeds == SEEDS {
        assert_eq!(patterns, 40);
        assert!(waves >= 4, "{waves} patterns took waves");
    }
}
