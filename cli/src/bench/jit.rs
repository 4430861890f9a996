//! What compiling the kernel of a point costs a process that has compiled nothing before.

use super::{Points, spread};
use crate::table::Table;
use crate::{Verdict, output};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::process::{Command, Stdio};
use std::time::Instant;

const PATTERN: &str = "moe_finalize_ar_residual_rmsnorm";

/// The kernel that so many ranks launch for so many tokens.
#[derive(Debug, Serialize)]
struct Cost {
    ranks: u32,
    tokens: usize,
    /// Its entry point, which names its geometry.
    kernel: String,
    /// From the start of a process to its end, one per round.
    process: Vec<f64>,
    /// Of that, NVRTC's compilation: the rest is mostly loading NVRTC.
    compilation: Vec<f64>,
}

/// Runs `bench --jit`; no GPU is needed.
pub fn run(points: &[Points], hidden: u32, top_k: u32, rounds: u32, json: bool) -> Result<Verdict> {
    let cost = |ranks, tokens| Cost {
        ranks,
        tokens,
        kernel: String::new(),
        process: Vec::new(),
        compilation: Vec::new(),
    };
    let of =
        |point: &Points| point.tokens.iter().map(|tokens| cost(point.ranks, *tokens)).collect::<Vec<_>>();
    let mut costs: Vec<Cost> = points.iter().flat_map(of).collect();
    // The first round is not counted: it brings NVRTC from the disk into memory.
    for round in 0..=rounds {
        for cost in &mut costs {
            let Cold { kernel, process, compilation } = cold(cost, hidden, top_k)?;
            if round > 0 {
                cost.kernel = kernel;
                cost.process.push(process);
                cost.compilation.push(compilation);
            }
        }
    }
    if json {
        output::json(&costs)?;
        return Ok(Verdict::Good);
    }
    let mut table = Table::new(&["N", "T", "kernel", "process", "min", "max", "compilation", "min", "max"]);
    for Cost { ranks, tokens, kernel, process, compilation } in &costs {
        let figures = [process, compilation].into_iter().flat_map(|times| spread(times)).flatten();
        let point = [ranks.to_string(), tokens.to_string(), kernel.clone()];
        table.row(point.into_iter().chain(figures.map(|ms| format!("{ms:.0}"))));
    }
    output::print(&format!(
        "one kernel (H = {hidden}, K = {top_k}, bf16) for sm_90a, nothing cached; ms from the start of a process to its end, and of NVRTC alone\n\n{table}"
    ))?;
    Ok(Verdict::Good)
}

/// What one process cost.
struct Cold {
    kernel: String,
    /// Milliseconds, as in [`Cost`].
    process: f64,
    compilation: f64,
}

/// A process that does nothing but that.
fn cold(Cost { ranks, tokens, .. }: &Cost, hidden: u32, top_k: u32) -> Result<Cold> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(["show", "--pattern", PATTERN, "--exact", "--arch", "sm_90a", "--json"]);
    command.args(["--ranks", &ranks.to_string(), "--tokens", &tokens.to_string()]);
    command.args(["--set", "dtype=bf16", &format!("hidden={hidden}"), &format!("top_k={top_k}")]);
    command.env("CUDA_CACHE_DISABLE", "1").stdin(Stdio::null()).stderr(Stdio::inherit());
    let start = Instant::now();
    let output = command.output().context("cannot run this program again")?;
    let took = start.elapsed();
    let report = serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap_or_default();
    if !output.status.success() {
        let why = report["not_compiled"].as_str().map_or_else(|| output.status.to_string(), str::to_owned);
        bail!("the kernel of a group of {ranks} for {tokens} tokens was not compiled: {why}");
    }
    let kernel = report["entries"][0].as_str().context("the report has no entry")?;
    let compilation = report["compiled"][0]["ms"].as_f64().context("the report has no compilation")?;
    Ok(Cold { kernel: kernel.to_owned(), process: took.as_secs_f64() * 1e3, compilation })
}
