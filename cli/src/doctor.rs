//! `seamline doctor`: what this machine has, and how to get what it lacks.

mod peers;

use crate::execute::execute;
use crate::{Verdict, output, places};
use anyhow::Result;
use clap::Args;
use cudarc::driver::CudaContext;
use seamline::cuda;
use seamline::cuda::__private::{Device, locate};
use seamline::patterns::ResidualRmsnorm;
use seamline::sim::Simulator;
use seamline::{DType, Definition};
use seamline_codegen::workload::{Kind, Workload};
use seamline_codegen::{Dims, Presence, Request};
use serde::Serialize;
use std::time::Instant;

/// Arguments of `seamline doctor`.
#[derive(Args)]
pub struct Doctor {
    /// JSON
    #[arg(long)]
    json: bool,
}

/// What was found of one thing.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    state: State,
    detail: String,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    /// Fine without it, for less.
    Absent,
    /// Needed.
    Missing,
}

impl Doctor {
    /// Looks at everything; the verdict is bad if something that is needed is missing.
    pub fn run(&self) -> Result<Verdict> {
        let findings = examine();
        if self.json {
            output::json(&findings)?;
        } else {
            let mut text = String::new();
            for finding in &findings {
                let mark = match finding.state {
                    State::Ok => "ok",
                    State::Absent => "-",
                    State::Missing => "MISSING",
                };
                let detail = finding.detail.replace('\n', &format!("\n{:27}", ""));
                text += &format!("{:<16} {mark:<9} {detail}\n", finding.what);
            }
            output::print(&text)?;
        }
        let missing = findings.iter().any(|finding| finding.state == State::Missing);
        Ok(if missing { Verdict::Bad } else { Verdict::Good })
    }
}

fn examine() -> Vec<Finding> {
    let finding = |what, state, detail| Finding { what, state, detail };
    let mut findings = Vec::new();
    let devices = devices(&mut findings);
    findings.push(match locate::nvrtc() {
        Ok(nvrtc) => {
            let place =
                nvrtc.path.as_ref().map_or("the loader's path".to_owned(), |path| path.display().to_string());
            let archs = nvrtc.archs.iter().map(|arch| format!("sm_{arch}")).collect::<Vec<_>>().join(" ");
            let (major, minor) = nvrtc.version;
            finding("NVRTC", State::Ok, format!("{major}.{minor}, {place} (by {})\n{archs}", nvrtc.found_by))
        }
        Err(error) => finding("NVRTC", State::Missing, error.to_string()),
    });
    findings.push(match simulate() {
        Ok(detail) => finding("simulator", State::Ok, detail),
        // One place to run is enough.
        Err(error) if devices > 0 => finding("simulator", State::Absent, output::chain(&error)),
        Err(error) => {
            finding("simulator", State::Missing, format!("there is no GPU either: {}", output::chain(&error)))
        }
    });
    findings.push(match Simulator::cache() {
        Ok(folder) => {
            finding("cache", State::Ok, format!("built simulators are kept in {}", folder.display()))
        }
        Err(error) => finding("cache", State::Absent, error.to_string()),
    });
    findings
}

/// Runs a small kernel on the CPU. It may have been kept; so the compiler is tried on its own.
fn simulate() -> Result<String> {
    let start = Instant::now();
    let compiler = Simulator::try_compiler()?;
    let built_in = start.elapsed();
    let start = Instant::now();
    let graph = ResidualRmsnorm::GRAPH;
    let request = Request { hidden: Some(64), top_k: None, dtype: Some(DType::Bf16), ranks: 1 };
    let program = graph.bind(&Dims::bind(graph, &request, Presence::ALL)?)?;
    let workload = Workload::new(&program, 1, 0, Kind::Ordinary);
    execute(graph, &program, &places::simulator(1)?.ranks, &workload)?;
    let ran_in = start.elapsed();
    Ok(format!("`{compiler}` built an object in {built_in:.1?}; a kernel was ready and ran in {ran_in:.1?}"))
}

/// Driver and GPUs. Answers how many of them kernels can run on.
fn devices(findings: &mut Vec<Finding>) -> usize {
    let mut found = |what, state, detail| findings.push(Finding { what, state, detail });
    let version = match cuda::driver_version() {
        Ok(version) => version,
        Err(error) => {
            found("driver", State::Absent, format!("{error}\nwithout a GPU, kernels run in the simulator"));
            return 0;
        }
    };
    found("driver", State::Ok, format!("CUDA {}.{}", version / 1000, version % 1000 / 10));
    let count = match CudaContext::device_count() {
        Ok(count) => usize::try_from(count).unwrap_or(0),
        Err(error) => {
            found("GPU", State::Absent, format!("the driver does not start: {error}"));
            return 0;
        }
    };
    if count == 0 {
        found("GPU", State::Absent, "the driver has none".to_owned());
    }
    let mut usable = 0;
    for ordinal in 0..count {
        match cuda::context(ordinal).and_then(|context| Device::of(&context)) {
            Ok(device) => {
                usable += 1;
                let model = device.model;
                let bandwidth = device
                    .peak_bytes_per_second
                    .map_or(String::new(), |rate| format!(", {:.0} GB/s", rate / 1e9));
                let detail =
                    format!("{ordinal}: {}, {}, {} SMs{bandwidth}", device.name, device.arch, model.sms);
                found("GPU", State::Ok, detail);
            }
            Err(error) => found("GPU", State::Absent, format!("{ordinal}: {error}")),
        }
    }
    if count > 1 {
        match peers::closed(count) {
            Ok(closed) if closed.is_empty() => {
                found("peer links", State::Ok, format!("each of {count} GPUs reaches every other's memory"))
            }
            Ok(closed) => found("peer links", State::Absent, format!("no access from {}", closed.join(", "))),
            Err(error) => found("peer links", State::Absent, error.to_string()),
        }
    }
    usable
}
