//! What compiling one kernel costs a process that has compiled nothing before.

use super::{Points, median};
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
    /// From the start of a process to the end of the process that has the CUBIN, one per round.
    milliseconds: Vec<f64>,
}

/// Runs `bench --jit`; no GPU is needed.
pub fn run(points: &[Points], hidden: u32, top_k: u32, rounds: u32, json: bool) -> Result<Verdict> {
    let mut costs: Vec<Cost> =
        points.iter().map(|p| Cost { ranks: p.ranks, milliseconds: Vec::new() }).collect();
    // The first round is not counted: it brings NVRTC from the disk into memory.
    for round in 0..=rounds {
        for cost in &mut costs {
            let took = cold(cost.ranks, hidden, top_k)?;
            if round > 0 {
                cost.milliseconds.push(took);
            }
        }
    }
    if json {
        output::json(&costs)?;
        return Ok(Verdict::Good);
    }
    let mut table = Table::new(&["N", "ms", "min", "max"]);
    for Cost { ranks, milliseconds } in &costs {
        let least = milliseconds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = milliseconds.iter().copied().fold(0.0, f64::max);
        let figures = [median(milliseconds).unwrap_or_default(), least, most];
        table.row(std::iter::once(ranks.to_string()).chain(figures.map(|ms| format!("{ms:.0}"))));
    }
    output::print(&format!(
        "one kernel (T = 1, H = {hidden}, K = {top_k}, bf16) for sm_90a, from the start of a process to its end, nothing cached\n\n{table}"
    ))?;
    Ok(Verdict::Good)
}

/// Milliseconds of a process that does nothing but that.
fn cold(ranks: u32, hidden: u32, top_k: u32) -> Result<f64> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(["show", "--pattern", "moe_finalize_ar_residual_rmsnorm", "--tokens", "1"]);
    command.args(["--arch", "sm_90a", "--json", "--ranks", &ranks.to_string(), "--set", "dtype=bf16"]);
    command.args([format!("hidden={hidden}"), format!("top_k={top_k}")]);
    command.env("CUDA_CACHE_DISABLE", "1").stdin(Stdio::null()).stderr(Stdio::inherit());
    let start = Instant::now();
    let output = command.output().context("cannot run this program again")?;
    let took = start.elapsed();
    if !output.status.success() {
        let report = serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap_or_default();
        let why = report["not_compiled"].as_str().map_or_else(|| output.status.to_string(), str::to_owned);
        bail!("the kernel of a group of {ranks} was not compiled: {why}");
    }
    Ok(took.as_secs_f64() * 1e3)
}
