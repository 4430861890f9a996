//! Every ready-made pattern compiles for every architecture, within a budget of registers, and hardly any spills.
//!
//! NVRTC needs no GPU. The budgets are NVRTC 13.0's; another version may need other ones.
#![cfg(feature = "cuda")]

use seamline::Graph;
use seamline::cuda::{locate, nvrtc};
use seamline::patterns::*;
use seamline::prelude::*;
use seamline_codegen::emit::{Target, emit};
use seamline_codegen::schedule::{DeviceModel, Planner, Schedule};
use seamline_codegen::{Dims, Presence, Request};

const ARCHS: [&str; 3] = ["sm_90a", "sm_100a", "sm_120"];

/// A pattern at the sizes of a model that has it.
struct Case {
    graph: &'static Graph,
    hidden: u32,
    top_k: u32,
    dtype: DType,
    ranks: u32,
    /// What runs it; what is taken, where nothing is said.
    schedule: Option<Schedule>,
    /// The most registers per thread that an entry may use.
    registers: u32,
    /// The most bytes that an entry may spill.
    spills: u32,
}

fn cases() -> Vec<Case> {
    use DType::{Bf16, F16, F32};
    let case = |graph, (hidden, top_k, dtype, ranks), registers| Case {
        graph,
        hidden,
        top_k,
        dtype,
        ranks,
        schedule: None,
        registers,
        spills: 0,
    };
    let of_owner =
        |graph, sizes, registers| Case { schedule: Some(Schedule::Owner), ..case(graph, sizes, registers) };
    vec![
        case(MoeFinalizeArResidualRmsnorm::GRAPH, (7168, 8, Bf16, 8), 120),
        case(MoeFinalizeArResidualRmsnorm::GRAPH, (7168, 8, Bf16, 1), 80),
        case(MoeFinalizeArResidualRmsnorm::GRAPH, (6144, 8, Bf16, 4), 120),
        Case { spills: 32, ..case(MoeFinalizeArResidualRmsnorm::GRAPH, (4096, 22, F16, 2), 128) },
        case(MoeFinalizeArResidualRmsnorm::GRAPH, (1024, 1, F32, 2), 80),
        case(MoeFinalizeArResidualGemmaRmsnorm::GRAPH, (2048, 10, Bf16, 4), 128),
        case(MoeFinalizeArResidualRmsnormF32Gamma::GRAPH, (2880, 4, Bf16, 4), 80),
        case(MoeFinalizeAr::GRAPH, (7168, 8, Bf16, 8), 112),
        Case { spills: 32, ..case(ArResidualRmsnorm::GRAPH, (8192, 0, Bf16, 8), 96) },
        case(ArResidualRmsnormInPlace::GRAPH, (4096, 0, F16, 2), 64),
        case(ArSandwichGemmaRmsnorm::GRAPH, (3840, 0, Bf16, 2), 80),
        case(ArScaledResidualRmsnorm::GRAPH, (1536, 0, Bf16, 2), 72),
        case(ResidualRmsnorm::GRAPH, (8192, 0, F32, 1), 72),
        case(ResidualRmsnorm::GRAPH, (1001, 0, Bf16, 1), 48),
        of_owner(MoeFinalizeArResidualRmsnorm::GRAPH, (7168, 8, Bf16, 8), 120),
        of_owner(MoeFinalizeArResidualRmsnorm::GRAPH, (6144, 8, Bf16, 4), 120),
        of_owner(MoeFinalizeArResidualRmsnorm::GRAPH, (4096, 22, F16, 2), 128),
        of_owner(MoeFinalizeArResidualRmsnorm::GRAPH, (1024, 1, F32, 2), 80),
        of_owner(MoeFinalizeArResidualRmsnormF32Gamma::GRAPH, (2880, 4, Bf16, 4), 80),
        of_owner(MoeFinalizeAr::GRAPH, (7168, 8, Bf16, 8), 112),
        of_owner(ArResidualRmsnorm::GRAPH, (8192, 0, Bf16, 8), 96),
        of_owner(ArResidualRmsnormInPlace::GRAPH, (4096, 0, F16, 2), 64),
        of_owner(ArSandwichGemmaRmsnorm::GRAPH, (3840, 0, Bf16, 2), 80),
    ]
}

impl Case {
    fn name(&self) -> String {
        let Case { graph, hidden, top_k, dtype, ranks, schedule, .. } = self;
        let schedule = schedule.map_or("", Schedule::name);
        format!("{}, H={hidden} K={top_k} N={ranks} {dtype} {schedule}", graph.name)
    }

    /// With every optional input, which takes the most registers.
    fn source(&self) -> String {
        let request = Request {
            hidden: Some(self.hidden),
            top_k: Some(self.top_k),
            dtype: Some(self.dtype),
            ranks: self.ranks,
        };
        let dims = Dims::bind(self.graph, &request, Presence::ALL).unwrap();
        let program = self.graph.bind(&dims).unwrap();
        let planner = Planner::new(&program, DeviceModel::H200, 1, false);
        let geometries = planner.with_schedules(self.schedule.map(|s| (1, s))).geometries(4096);
        emit(&program, &Target { geometries, early_trigger: false, one_grid: false }).cuda()
    }

    /// What is wrong with what this compiles to.
    fn faults(&self, source: &str, arch: &str) -> Vec<String> {
        let place = format!("{} for {arch}", self.name());
        let compiled = match nvrtc::compile(source, arch) {
            Ok(compiled) => compiled,
            Err(error) => return vec![format!("{place}: {error}")],
        };
        let mut faults = Vec::new();
        if compiled.entries.is_empty() {
            faults.push(format!("{place}: the log names no entry\n{}", compiled.log));
        }
        for usage in &compiled.entries {
            if usage.registers > self.registers {
                let budget = self.registers;
                faults
                    .push(format!("{place}: {} uses {} registers of {budget}", usage.entry, usage.registers));
            }
            let bytes = usage.spill_stores + usage.spill_loads;
            if bytes > self.spills {
                faults.push(format!(
                    "{place}: {} spills {bytes} bytes at {} registers",
                    usage.entry, usage.registers
                ));
            }
        }
        faults
    }
}

#[test]
fn ready_made_patterns_compile_within_their_budgets() {
    if let Err(error) = locate::nvrtc() {
        eprintln!("SKIPPED: {error}");
        return;
    }
    let cases = cases();
    let sources: Vec<String> = cases.iter().map(Case::source).collect();
    let each = cases.iter().zip(&sources);
    let jobs: Vec<_> = each.flat_map(|(case, source)| ARCHS.map(|arch| (case, source, arch))).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let faults: Vec<String> = std::thread::scope(|scope| {
        let share = |part: usize| {
            let jobs = jobs.iter().skip(part).step_by(threads);
            jobs.flat_map(|(case, source, arch)| case.faults(source, arch)).collect::<Vec<_>>()
        };
        let workers: Vec<_> = (0..threads).map(|part| scope.spawn(move || share(part))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(jobs.len(), 69);
}

#[test]
fn every_ready_made_pattern_is_listed_and_compiled() {
    let source = include_str!("../src/patterns.rs");
    let written: Vec<String> = seamline_codegen::parse::parse_file(source)
        .unwrap()
        .iter()
        .map(|graph| graph.name.to_string())
        .collect();
    let listed: Vec<&str> = ALL.iter().map(|listed| listed.graph.name.as_ref()).collect();
    assert_eq!(written, listed);
    let compiled: Vec<&str> = cases().iter().map(|case| case.graph.name.as_ref()).collect();
    assert!(listed.iter().all(|name| compiled.contains(name)), "{listed:?} are not all among {compiled:?}");
}
