//! What compiling one kernel costs a process that has compiled nothing before.

use super::{Points, spread};
use crate::table::Table;
use crate::{Verdict, output};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The kernel for one token on so many ranks.
#[derive(Debug, Serialize)]
struct Cost {
    ranks: u32,
    /// From the start of a process to its end, one per round.
    process: Vec<f64>,
    /// Of that, NVRTC's compilation: the rest is mostly loading NVRTC.
    compilation: Vec<f64>,
}

/// Runs `bench --jit`; no GPU is needed.
pub fn run(points: &[Points], hidden: u32, top_k: u32, rounds: u32, json: bool) -> Result<Verdict> {
    let mut costs: Vec<Cost> = points
        .iter()
        .map(|p| Cost { ranks: p.ranks, process: Vec::new(), compilation: Vec::new() })
        .collect();
    // The first round is not counted: it brings NVRTC from the disk into memory.
    for round in 0..=rounds {
        for cost in &mut costs {
            let (process, compilation) = cold(cost.ranks, hidden, top_k)?;
            if round > 0 {
                cost.process.push(process);
                cost.compilation.push(compilation);
            }
        }
    }
    if json {
        output::json(&costs)?;
        return Ok(Verdict::Good);
    }
    let mut table = Table::new(&["N", "process", "min", "max", "compilation", "min", "max"]);
    for Cost { ranks, process, compilation } in &costs {
        let figures = [process, compilation].into_iter().flat_map(|times| spread(times)).flatten();
        table.row(std::iter::once(ranks.to_string()).chain(figures.map(|ms| format!("{ms:.0}"))));
    }
    output::print(&format!(
        "one kernel (T = 1, H = {hidden}, K = {top_k}, bf16) for sm_90a, nothing cached; ms from the start of a process to its end, and of NVRTC alone\n\n{table}"
    ))?;
    Ok(Verdict::Good)
}

/// Milliseconds of a process that does nothing but that, and of its compilation.
fn cold(ranks: u32, hidden: u32, top_k: u32) -> Result<(f64, f64)> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(["show", "--pattern", "moe_finalize_ar_residual_rmsnorm", "--tokens", "1"]);
    command.args(["--arch", "sm_90a", "--json", "--ranks", &ranks.to_string(), "--set", "dtype=bf16"]);
    command.args([format!("hidden={hidden}"), format!("top_k={top_k}")]);
    command.env("CUDA_CACHE_DISABLE", "1").stdin(Stdio::null()).stderr(Stdio::inherit());
    let start = Instant::now();
    let output = command.output().context("cannot run this program again")?;
    let took = start.elapsed();
    let report = serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap_or_default();
    if !output.status.success() {
        let why = report["not_compiled"].as_str().map_or_else(|| output.status.to_string(), str::to_owned);
        bail!("the kernel of a group of {ranks} was not compiled: {why}");
    }
    let compilation = report["compiled"][0]["ms"].as_f64().context("the report has no compilation")?;
    Ok((took.as_secs_f64() * 1e3, compilation))
}
