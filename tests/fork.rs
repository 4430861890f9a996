//! Forks of a group, on the executors of the host.

use seamline::executor::{Executor, HostKernel};
use seamline::prelude::*;
use seamline::testing::Runner;
use seamline::{Error, ErrorKind, Variant};
use seamline_codegen::reference;
use seamline_codegen::workload::{Kind, Workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The seam of a mixture of experts.
#[fused_pattern(hidden = 256, top_k = 3, dtype = bf16)]
pub fn seam(
    rows: Permuted,
    map: RowMap,
    weights: ExpertWeights<f32>,
    residual: Tokens,
    gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    let residual_out = all_reduce(finalize(rows, map, weights)) + residual;
    let norm_out = rms_norm(residual_out, gamma, eps);
    (residual_out, norm_out)
}

/// Nothing to exchange.
#[fused_pattern(hidden = 64, dtype = f32)]
pub fn add(x: Tokens, y: Tokens) -> Tokens {
    let sum = x + y;
    sum
}

/// The least that exchanges.
#[fused_pattern(hidden = 8, dtype = f32)]
pub fn reduce(x: Tokens) -> Tokens {
    let sum = all_reduce(x);
    sum
}

fn forks(ranks: &[Rank]) -> Vec<Rank> {
    ranks.iter().map(|rank| rank.fork().unwrap()).collect()
}

/// A group of each executor.
fn groups(ranks: u32) -> Vec<Vec<Rank>> {
    [
        Group::reference(ranks).unwrap(),
        #[cfg(feature = "sim")]
        simulated::group(ranks, seamline::sim::Order::Random(3)),
    ]
    .into()
}

/// Launches once, and compares with the interpreter.
fn run(runner: &Runner, tokens: usize, seed: u64, kind: Kind) {
    let program = runner.variants()[0].program();
    let workload = Workload::new(program, tokens, seed, kind);
    let expected = reference::run(program, &workload.inputs(), tokens).unwrap();
    let ran = runner.run(program, &workload).unwrap();
    for (rank, (got, want)) in ran.outputs.iter().zip(&expected).enumerate() {
        assert!(*got == want.outputs, "T={tokens}, seed {seed}, rank {rank}");
    }
}

/// What each rank gets when every one gives `x`.
fn reduced(kernels: &[Kernel<Reduce>], x: f32) -> Result<Vec<f32>, Error> {
    // On the heap, where everything is as aligned as vector accesses want it.
    let x = vec![x; 8];
    let mut sums = vec![vec![0.0f32; 8]; kernels.len()];
    let args = sums.iter_mut().map(|sum| ReduceArgs { tokens: 1, x: (&x).into(), sum: sum.into() });
    launch_all(kernels, [Queue::host()], args)?;
    Ok(sums.iter().map(|sum| sum[7]).collect())
}

#[test]
fn launches_of_a_group_and_its_forks_interleave() {
    for ranks in groups(2) {
        let mut all = vec![ranks.clone(), forks(&ranks), forks(&ranks)];
        all.push(forks(&all[1]));
        assert!(all.iter().flatten().all(|rank| rank.executor() == ranks[0].executor()));
        let runners: Vec<_> =
            all.iter().map(|ranks| Runner::new(Seam::GRAPH, ranks, &Prepare::new(5)).unwrap()).collect();
        // Each goes through epochs and slots of its own.
        for launch in 0..24usize {
            let runner = &runners[launch * launch % 7 % runners.len()];
            run(runner, 1 + launch * 3 % 5, launch as u64, Kind::Ordinary);
        }
    }
}

#[test]
fn two_threads_launch_without_any_order() {
    for ranks in groups(2) {
        let all = [forks(&ranks), ranks];
        let runners = all.map(|ranks| Runner::new(Seam::GRAPH, &ranks, &Prepare::new(4)).unwrap());
        std::thread::scope(|scope| {
            for (seed, runner) in runners.iter().enumerate() {
                scope.spawn(move || {
                    (0..16).for_each(|i| run(runner, 1 + (i + seed) % 4, (i + seed) as u64, Kind::Ordinary))
                });
            }
        });
    }
}

#[test]
fn a_fork_is_a_group_of_its_own() {
    let ranks = Group::reference(2).unwrap();
    let forks = forks(&ranks);
    for (index, (rank, fork)) in ranks.iter().zip(&forks).enumerate() {
        assert_eq!((fork.index() as usize, fork.group_size()), (index, 2));
        assert_eq!((fork.executor(), fork.device()), (rank.executor(), rank.device()));
    }
    let mixed = [ranks[0].clone(), forks[1].clone()];
    let refused = |error: Error| {
        assert!(matches!(error.kind(), ErrorKind::OtherGroup { at: 1, got_rank: 1, .. }), "{error}");
        assert!(error.to_string().contains("1 is rank 1 of another group"), "{error}");
    };
    refused(Reduce::prepare_all(&mixed, &Prepare::new(1)).unwrap_err());
    refused(seamline::reset(&mixed).unwrap_err());
    let [a, b] = [&ranks, &forks].map(|ranks| Reduce::prepare_all(ranks, &Prepare::new(1)).unwrap());
    refused(reduced(&[a[0].clone(), b[1].clone()], 1.0).unwrap_err());
    refused(reduced(&[b[0].clone(), a[1].clone()], 1.0).unwrap_err());
    assert_eq!(reduced(&a, 1.0).unwrap(), [2.0; 2]);
    assert_eq!(reduced(&b, 2.0).unwrap(), [4.0; 2]);
}

#[test]
fn forks_are_numbered_by_rank() {
    let ranks = Group::reference(2).unwrap();
    // Clones of a rank are one rank.
    let first = [ranks[0].fork().unwrap(), ranks[0].clone().fork().unwrap(), ranks[0].fork().unwrap()];
    let second = [(); 3].map(|()| ranks[1].fork().unwrap());
    for (i, a) in first.iter().enumerate() {
        for (j, b) in second.iter().enumerate() {
            let together = Reduce::prepare_all(&[a.clone(), b.clone()], &Prepare::new(1));
            assert_eq!(together.is_ok(), i == j, "fork {i} of rank 0, fork {j} of rank 1");
        }
    }
}

#[test]
fn ranks_fork_and_prepare_from_threads_of_their_own() {
    let ranks = Group::reference(4).unwrap();
    let kernels: Vec<_> = std::thread::scope(|scope| {
        let prepare = |rank: &Rank| {
            let fork = rank.fork().unwrap();
            [rank, &fork].map(|rank| Reduce::prepare(rank, &Prepare::new(1)).unwrap())
        };
        let threads: Vec<_> = ranks.iter().map(|rank| scope.spawn(move || prepare(rank))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for group in 0..2 {
        let kernels: Vec<_> = kernels.iter().map(|both: &[Kernel<Reduce>; 2]| both[group].clone()).collect();
        assert_eq!(reduced(&kernels, 3.0).unwrap(), [12.0; 4]);
    }
}

#[test]
fn a_fork_that_others_have_not_taken_is_waited_for_at_prepare() {
    let ranks = Group::reference(2).unwrap();
    let fork = ranks[0].fork().unwrap();
    let impatient = Prepare::new(1).timeout(Duration::from_millis(10));
    let error = Reduce::prepare(&fork, &impatient).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::PeerTimeout { missing, .. } if missing == &[1]), "{error}");
    // It was there before anything was prepared, so the other rank may still join.
    let joined = ranks[1].fork().unwrap();
    let kernels = Reduce::prepare_all(&[fork, joined], &impatient).unwrap();
    assert_eq!(reduced(&kernels, 1.5).unwrap(), [3.0; 2]);
}

#[test]
fn a_fork_after_an_exchanging_kernel_is_refused() {
    let ranks = Group::reference(2).unwrap();
    // What exchanges nothing polls for nobody.
    Add::prepare_all(&ranks, &Prepare::new(1)).unwrap();
    let forks = forks(&ranks);
    let kernels = Reduce::prepare_all(&forks, &Prepare::new(1)).unwrap();
    // The whole family shares the device.
    for rank in [&ranks[0], &forks[1]] {
        let error = rank.fork().unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::LateFork { pattern, .. } if pattern == "reduce"),
            "{error}"
        );
        assert!(error.to_string().contains("`reduce` was prepared without this fork"), "{error}");
        assert!(error.to_string().contains("take all forks of a group first, then prepare"), "{error}");
    }
    // The rest is as it was.
    assert_eq!(reduced(&kernels, 1.0).unwrap(), [2.0; 2]);
    let kernels = Reduce::prepare_all(&ranks, &Prepare::new(1)).unwrap();
    assert_eq!(reduced(&kernels, 1.0).unwrap(), [2.0; 2]);
}

#[test]
fn an_early_trigger_and_forks_exclude_each_other() {
    let early = Prepare::new(1).early_trigger();
    let ranks = Group::reference(2).unwrap();
    let forks = forks(&ranks);
    for ranks in [&ranks, &forks] {
        let error = Reduce::prepare_all(ranks, &early).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::EarlyTriggerBesideFork { forks: 1 }), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("`early_trigger()` and forks exclude each other, and the group has a fork"),
            "{text}"
        );
        assert!(text.contains("leave `early_trigger()` out, or do without forks"), "{text}");
        // What exchanges nothing has no block that others wait for.
        Add::prepare_all(ranks, &early).unwrap();
        Reduce::prepare_all(ranks, &Prepare::new(1)).unwrap();
    }
    // The other way round: what is planned with an early trigger gets no fork any more.
    let ranks = Group::reference(2).unwrap();
    Reduce::prepare_all(&ranks, &early).unwrap();
    assert!(matches!(ranks[0].fork().unwrap_err().kind(), ErrorKind::LateFork { .. }));
}

#[test]
fn a_single_rank_is_forked_at_any_time() {
    let rank = Group::reference(1).unwrap().remove(0);
    let sum = |rank: &Rank| reduced(&[Reduce::prepare(rank, &Prepare::new(1)).unwrap()], 4.0).unwrap();
    assert_eq!(sum(&rank), [4.0]);
    assert_eq!(sum(&rank.fork().unwrap()), [4.0]);
}

#[test]
fn launches_are_shaped_for_all_groups_of_the_device() {
    let kernel = |forks: usize| {
        let ranks = Group::reference(2).unwrap();
        (0..forks).for_each(|_| drop(self::forks(&ranks)));
        Reduce::prepare_all(&ranks, &Prepare::new(512)).unwrap().remove(0)
    };
    let sms = Group::reference(2).unwrap()[0].device().sms;
    for forks in 1..4 {
        let kernel = kernel(forks);
        for tokens in [1, 16, 128, 512] {
            let grid = kernel.explain(tokens).grid;
            let ctas = grid.clusters * grid.ctas * (1 + forks as u32);
            assert!(ctas <= sms, "{forks} forks, T={tokens}: {grid:?}");
        }
    }
    assert!(kernel(0).explain(128).grid.clusters > kernel(3).explain(128).grid.clusters);
}

/// The reference, which counts what it compiles.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Executor for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn compile(&self, variants: &[Variant]) -> Result<Box<dyn HostKernel>, Error> {
        self.0.fetch_add(1, Ordering::Relaxed);
        seamline_runtime::Reference.compile(variants)
    }
}

#[test]
fn the_same_kernel_is_compiled_once_for_group_and_forks() {
    let executor = Arc::new(Counting::default());
    let ranks = Group::with_executor(Arc::clone(&executor) as Arc<dyn Executor>, 2).unwrap();
    for ranks in [&ranks, &forks(&ranks)] {
        Reduce::prepare_all(ranks, &Prepare::new(1)).unwrap();
        Seam::prepare_all(ranks, &Prepare::new(1)).unwrap();
    }
    assert_eq!(executor.0.load(Ordering::Relaxed), 2);
}

#[test]
fn a_reset_of_one_group_is_none_of_the_other() {
    for ranks in groups(2) {
        let all = [forks(&ranks), ranks];
        let runners = all.each_ref().map(|ranks| Runner::new(Seam::GRAPH, ranks, &Prepare::new(4)).unwrap());
        runners.iter().for_each(|runner| run(runner, 4, 3, Kind::OutOfRange));
        let stray = |group: &[Rank]| group.iter().map(|r| r.status().unwrap().out_of_range).sum::<u64>();
        let counted = all.each_ref().map(|ranks| stray(ranks));
        assert!(counted[0] > 0 && counted[0] == counted[1]);
        seamline::reset(&all[1]).unwrap();
        assert_eq!(all.each_ref().map(|ranks| stray(ranks)), [counted[0], 0]);
        runners.iter().for_each(|runner| run(runner, 3, 4, Kind::Ordinary));
    }
}

#[cfg(feature = "sim")]
mod simulated {
    use super::*;
    use seamline::sim::{Options, Order, Simulator};

    pub fn group(ranks: u32, order: Order) -> Vec<Rank> {
        Group::with_executor(Arc::new(Simulator::new(Options::new(order))), ranks).unwrap()
    }

    #[test]
    fn a_fault_in_one_group_is_none_of_the_other() {
        // Rank 1 is a second late: too late for who waits 5 milliseconds.
        let late = Options::new(Order::Forward).delay(1, Duration::from_secs(1));
        let ranks = Group::with_executor(Arc::new(Simulator::new(late)), 2).unwrap();
        let forks = forks(&ranks);
        let prepare = |ranks: &[Rank], patience| {
            Reduce::prepare_all(ranks, &Prepare::new(1).timeout(patience)).unwrap()
        };
        let hasty = prepare(&ranks, Duration::from_millis(5));
        let [patient, forked] = [&ranks, &forks].map(|ranks| prepare(ranks, Duration::from_secs(60)));
        let fault = |rank: &Rank| rank.status().unwrap().fault;

        assert_eq!(reduced(&forked, 1.0).unwrap(), [2.0; 2]);
        assert!(reduced(&hasty, 1.0).unwrap()[0].is_nan(), "what a launch that failed stores");
        assert!(fault(&ranks[0]).is_some() && fault(&forks[0]).is_none());
        assert_eq!(reduced(&forked, 2.0).unwrap(), [4.0; 2]);
        let error = reduced(&patient, 1.0).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Fault(f) if Some(*f) == fault(&ranks[0])), "{error}");

        seamline::reset(&forks).unwrap();
        assert!(fault(&ranks[0]).is_some(), "another group's reset");
        assert_eq!(reduced(&forked, 3.0).unwrap(), [6.0; 2]);
        seamline::reset(&ranks).unwrap();
        assert_eq!(fault(&ranks[0]), None);
        assert_eq!(reduced(&patient, 1.0).unwrap(), [2.0; 2]);
        assert_eq!(reduced(&forked, 4.0).unwrap(), [8.0; 2]);
    }
}
