//! `seamline::testing::check`, as an engine's own tests use it; and that it finds what it is for.

use seamline::executor::{Executor, HostKernel, HostLaunch};
use seamline::patterns::*;
use seamline::prelude::*;
use seamline::testing::{Check, CheckError, Kind, Outcome, Report, check};
use seamline::{Error, ErrorKind, Graph, Variant};
use seamline_codegen::reference::{RankInputs, run_each};
use seamline_codegen::{OutputId, ParamId, Program};
use std::sync::Arc;

/// A report on what this machine has, of which `per_executor` cases are expected on each; or nothing, said aloud.
fn expect(result: Result<Report, CheckError>, per_executor: usize) -> usize {
    match result {
        Ok(report) => {
            println!("{report}");
            let executors = 2 - report.missing.len();
            assert_eq!(report.cases.len(), per_executor * executors);
            report.cases.len()
        }
        Err(error @ CheckError::NothingRan { .. }) => {
            eprintln!("SKIPPED: {error}");
            0
        }
        Err(error) => panic!("{error}"),
    }
}

/// By default: N = 1 and 2, T = 1 and 5, five kinds of inputs, one of which only a row map makes special.
const OF_EXPERTS: usize = 2 * 2 * 5;
const OF_TOKENS: usize = 2 * 2 * 4;

#[test]
fn every_ready_made_pattern_is_exact() {
    let small = |top_k| Prepare::new(16).hidden(136).top_k(top_k).dtype(DType::Bf16);
    let cases = [
        // With and without a shared expert.
        expect(check::<MoeFinalizeArResidualRmsnorm>(&small(8)), 2 * OF_EXPERTS),
        expect(check::<MoeFinalizeArResidualGemmaRmsnorm>(&small(6)), 2 * OF_EXPERTS),
        expect(check::<MoeFinalizeArResidualRmsnormF32Gamma>(&small(4)), OF_EXPERTS),
        expect(check::<MoeFinalizeAr>(&small(1)), 2 * OF_EXPERTS),
        expect(check::<ArResidualRmsnorm>(&small(1)), OF_TOKENS),
        expect(check::<ArResidualRmsnormInPlace>(&small(1)), OF_TOKENS),
        expect(check::<ArSandwichGemmaRmsnorm>(&small(1)), OF_TOKENS),
        expect(check::<ArScaledResidualRmsnorm>(&small(1)), OF_TOKENS),
        // Without a collective N is 1.
        expect(check::<ResidualRmsnorm>(&small(1)), OF_TOKENS / 2),
    ];
    assert_eq!(cases.len(), ALL.len());
    println!("{} cases", cases.iter().sum::<usize>());
}

#[test]
fn rows_with_gaps_between_them_are_exact() {
    let dims = Prepare::new(16).hidden(136).top_k(4).dtype(DType::Bf16);
    // 16, 8, 4 and 2 byte accesses; a map and weights in wider buffers.
    let seam = dims
        .clone()
        .row_stride("gemm2_out", 192)
        .row_stride("shared_expert_output", 140)
        .row_stride("residual_in", 138)
        .row_stride("norm_out", 137)
        .row_stride("expanded_idx_to_permuted_idx", 9)
        .row_stride("expert_scale_factor", 6);
    let cases = [
        expect(check::<MoeFinalizeArResidualRmsnorm>(&seam), 2 * OF_EXPERTS),
        expect(check::<ArResidualRmsnormInPlace>(&dims.clone().row_stride("residual", 272)), OF_TOKENS),
        // Ragged rows, and a stride that is the row's length after all.
        expect(check::<ArResidualRmsnorm>(&dims.clone().hidden(33).row_stride("residual_in", 40)), OF_TOKENS),
        expect(check::<ArResidualRmsnorm>(&dims.row_stride("norm_out", 136)), OF_TOKENS),
    ];
    println!("{} cases", cases.iter().sum::<usize>());
}

#[test]
fn models_own_sizes_are_exact() {
    let every_group = |graph: &'static Graph, options: Prepare| {
        let check = Check::new(graph, &options).ranks(&[1, 2, 4, 8]).tokens(&[1, 3]).all_kinds();
        check.run(|_| ()).map_err(CheckError::from).and_then(Report::into_result)
    };
    let moe = Prepare::new(3).dtype(DType::Bf16);
    let kimi = moe.clone().hidden(7168).top_k(8);
    let cases = [
        expect(every_group(MoeFinalizeArResidualRmsnorm::GRAPH, kimi), 2 * 4 * 2 * 12),
        expect(
            every_group(MoeFinalizeArResidualRmsnormF32Gamma::GRAPH, moe.hidden(2880).top_k(4)),
            4 * 2 * 12,
        ),
    ];
    println!("{} cases", cases.iter().sum::<usize>());
}

/// The seam with both of its expert inputs optional, and the residual in place.
#[fused_pattern]
pub fn seam(
    rows: Permuted,
    map: RowMap,
    weights: Option<ExpertWeights<f32>>,
    shared: Option<Tokens>,
    mut residual: Tokens,
    gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    residual += all_reduce(finalize(rows, map, weights) + shared);
    let norm_out = rms_norm(residual, gamma, eps);
    (residual, norm_out)
}

/// One number of each dim at a time, beside small ones of the others.
#[test]
fn dims_and_tokens_of_all_sizes_are_exact() {
    let one = |options: Prepare, ranks: &[u32], tokens: &[usize], kinds: &[Kind]| {
        let check = Check::new(Seam::GRAPH, &options).ranks(ranks).tokens(tokens).kinds(kinds);
        let cases = check.cases().unwrap();
        expect(check.run(|_| ()).map_err(CheckError::from).and_then(Report::into_result), cases)
    };
    let options = |hidden, top_k, dtype| Prepare::new(33).hidden(hidden).top_k(top_k).dtype(dtype);
    let full = |hidden, top_k| options(hidden, top_k, DType::Bf16).variants(&[&[]]);
    let (mut cases, kinds) = (Vec::new(), [Kind::Ordinary, Kind::NanBehindDropped]);
    let tokens = [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33];
    let both = options(264, 3, DType::Bf16).variants(&[&[], &["weights", "shared"]]);
    cases.push(one(both, &[1, 2, 4, 8], &tokens, &kinds));
    for dtype in [DType::F16, DType::F32] {
        cases.push(one(options(44, 2, dtype), &[2], &[3], &kinds));
    }
    for top_k in [1, 2, 4, 6, 10, 16, 22] {
        cases.push(one(full(40, top_k), &[2], &[3], &kinds));
    }
    for hidden in [1, 7, 1024, 2688, 4096, 8192] {
        cases.push(one(full(hidden, 2), &[2], &[2], &kinds));
    }
    println!("{} cases", cases.iter().sum::<usize>());
    let of_tokens = 4 * 2 * 12 * 2;
    let executors = cases[0] / of_tokens;
    assert_eq!(cases.iter().sum::<usize>(), executors * (of_tokens + 2 * 4 * 2 + 7 * 2 + 6 * 2));
}

/// The reference, but that one rank stores a wrong bit in one element of one output.
#[derive(Debug)]
struct Broken {
    rank: u32,
    output: &'static str,
    /// Token and channel.
    place: (usize, usize),
}

#[derive(Debug)]
struct BrokenKernel(Vec<Program>, Broken);

impl Executor for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn exchanges_through_memory(&self) -> bool {
        false
    }

    fn compile(&self, variants: &[Variant]) -> Result<Box<dyn HostKernel>, Error> {
        let programs = variants.iter().map(|variant| variant.program().clone()).collect();
        Ok(Box::new(BrokenKernel(programs, Broken { ..*self })))
    }
}

impl HostKernel for BrokenKernel {
    fn run(&self, launches: &[HostLaunch<'_>]) -> Result<(), Error> {
        let BrokenKernel(programs, Broken { rank, output: broken, place: (token, channel) }) = self;
        let programs: Vec<_> = launches.iter().map(|launch| &programs[launch.variant_index()]).collect();
        let inputs = launches.iter().zip(&programs).map(|(launch, program)| {
            RankInputs((0..program.params.len() as u32).map(|p| launch.input(ParamId(p))).collect())
        });
        let inputs: Vec<_> = inputs.collect();
        let mut results = run_each(&programs, &inputs, launches[0].tokens() as usize)
            .map_err(|error| Error::executor("broken", error))?;
        drop(inputs);
        for ((launch, result), program) in launches.iter().zip(&mut results).zip(&programs) {
            for (i, (output, stored)) in program.outputs.iter().zip(&mut result.outputs).enumerate() {
                let at = (token * program.dims.hidden as usize + channel) * output.tensor.dtype.size();
                if launch.rank() == *rank && output.name == *broken && at < stored.bytes().len() {
                    stored.bytes_mut()[at] ^= 1;
                }
                // SAFETY: the inputs were dropped above, and this is the only thread.
                unsafe { launch.store(OutputId(i as u32), stored.bytes()) };
            }
        }
        Ok(())
    }
}

fn broken(rank: u32, output: &'static str, place: (usize, usize)) -> Check {
    let options = Prepare::new(4).hidden(24).top_k(2).dtype(DType::F16);
    let group = move |ranks| Group::with_executor(Arc::new(Broken { rank, output, place }), ranks);
    Check::new(MoeFinalizeArResidualRmsnorm::GRAPH, &options)
        .ranks(&[2])
        .tokens(&[1, 4])
        .kinds(&[Kind::Ordinary, Kind::Integers])
        .executor("broken", group)
}

#[test]
fn one_wrong_bit_is_found_and_named() {
    let report = broken(1, "norm_out", (2, 17)).run(|_| ()).unwrap();
    // One token has no third row.
    assert_eq!((report.equal(), report.cases.len()), (4, 8));
    for case in report.cases.iter().filter(|case| case.tokens == 4) {
        let Outcome::Different(difference) = &case.outcome else { panic!("{case}") };
        assert_eq!((difference.rank, difference.output.as_str()), (1, "norm_out"), "{case}");
        assert_eq!((difference.token, difference.channel), (2, 17), "{case}");
        assert_eq!(difference.expected.bits ^ difference.got.bits, 1, "{case}");
    }
    let error = report.into_result().unwrap_err();
    let message = error.to_string();
    let expected = "`moe_finalize_ar_residual_rmsnorm` with every optional input, N = 2, T = 4, inputs: ordinary, \
                    on broken: rank 1, `norm_out`, token 2, channel 17: expected ";
    assert!(message.starts_with(expected), "{message}");
    assert!(message.contains(" (0x") && message.contains(", got "), "{message}");
    assert!(message.ends_with("(4 of 8 cases fail)"), "{message}");
    assert_eq!(message, format!("{error:?}"), "`unwrap` tells it too");
}

#[test]
fn the_same_check_passes_when_nothing_is_wrong() {
    let report = broken(0, "no_such_output", (0, 0)).run(|_| ()).unwrap().into_result().unwrap();
    assert_eq!(report.cases.len(), 8);
    assert!(report.cases.iter().all(|case| case.errors.len() == 2 && case.errors[1] < 1e-2), "{report}");
}

/// An executor that cannot compile anything.
#[derive(Debug)]
struct Unable;

impl Executor for Unable {
    fn name(&self) -> &'static str {
        "unable"
    }

    fn compile(&self, _: &[Variant]) -> Result<Box<dyn HostKernel>, Error> {
        Err(Error::executor("unable", std::io::Error::other("out of luck")))
    }
}

#[test]
fn an_executor_that_cannot_prepare_fails_each_of_its_cases() {
    let options = Prepare::new(1).hidden(8).dtype(DType::F32);
    let check = Check::new(ResidualRmsnorm::GRAPH, &options)
        .executor("unable", |ranks| Group::with_executor(Arc::new(Unable), ranks))
        .executor("reference", Group::reference);
    let mut seen = 0;
    let report = check.run(|_| seen += 1).unwrap();
    // T is 1 at most.
    assert_eq!((check.cases().unwrap(), report.cases.len(), report.equal(), seen), (4, 8, 4, 8));
    let message = report.into_result().unwrap_err().to_string();
    assert!(message.contains("on unable: ") && message.contains("out of luck"), "{message}");
}

/// More optional inputs than all variants are made of.
#[fused_pattern(dtype = bf16)]
pub fn optional(x: Tokens, a: Option<Tokens>, b: Option<Tokens>, c: Option<Tokens>) -> Tokens {
    let sum = all_reduce(x + a + b + c);
    sum
}

#[test]
fn of_many_options_all_each_and_none_are_left_out() {
    let check = Check::new(Optional::GRAPH, &Prepare::new(1).hidden(8))
        .ranks(&[2])
        .kinds(&[Kind::Ordinary])
        .executor("reference", Group::reference);
    let report = check.run(|_| ()).unwrap().into_result().unwrap();
    let variants: Vec<&str> = report.cases.iter().map(|case| case.variant.as_str()).collect();
    let each = ["no `a`", "no `b`", "no `c`"];
    assert_eq!(variants, [&["every optional input"], &each[..], &["no `a` and no `b` and no `c`"]].concat());
}

#[test]
fn what_cannot_be_prepared_is_an_error_before_anything_runs() {
    let error = check::<ArResidualRmsnorm>(&Prepare::new(1).hidden(8)).unwrap_err();
    assert!(
        matches!(&error, CheckError::Prepare(e) if matches!(e.kind(), ErrorKind::Bind { .. })),
        "{error}"
    );
    assert!(error.to_string().contains("`dtype` of `ar_residual_rmsnorm` is not bound"), "{error}");
    let options = Prepare::new(2).hidden(8).dtype(DType::Bf16);
    let check =
        Check::new(ArResidualRmsnorm::GRAPH, &options).tokens(&[3]).executor("reference", Group::reference);
    let error = check.run(|_| ()).unwrap().into_result().unwrap_err();
    assert!(error.to_string().contains("3 tokens"), "{error}");
}

/// A rank that comes too late for the other one.
#[cfg(feature = "sim")]
#[test]
fn a_case_that_fails_leaves_nothing_behind_for_the_next() {
    use seamline::sim::{Options, Order, Simulator};
    use std::time::Duration;
    if let Err(error) = Simulator::available() {
        return eprintln!("SKIPPED: {error}");
    }
    let options = Prepare::new(2).hidden(8).dtype(DType::Bf16).timeout(Duration::from_millis(5));
    let late = Options::new(Order::Forward).delay(1, Duration::from_secs(3600));
    let check = Check::new(ArResidualRmsnorm::GRAPH, &options)
        .ranks(&[1, 2])
        .tokens(&[1, 2])
        .kinds(&[Kind::Ordinary])
        .executor("late", move |ranks| Group::with_executor(Arc::new(Simulator::new(late.clone())), ranks));
    let report = check.run(|_| ()).unwrap();
    assert_eq!((report.equal(), report.cases.len()), (2, 4), "{report:?}");
    for case in &report.cases[2..] {
        let Outcome::Failed(error) = &case.outcome else { panic!("{case}") };
        let ErrorKind::Fault(fault) = error.kind() else { panic!("{case}") };
        // Had the group kept the first fault, or its epochs, the second one would tell of them.
        assert_eq!((fault.peer, fault.slot, fault.epoch), (1, 0, 0), "{case}");
    }
}
