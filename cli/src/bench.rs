//! `seamline bench`: times the MoE seam on a GPU, in CUDA graphs, beside other implementations of it.

mod graph;
mod host;
mod jit;
mod peer;
mod seam;

use crate::table::Table;
use crate::target::{HIDDEN, TOP_K, schedule_names};
use crate::{Verdict, output};
use anyhow::{Context, Result};
use clap::Args;
use cudarc::driver::CudaContext;
use graph::{Captured, Streams};
use peer::Library;
use seam::Seam;
use seamline::Schedule;
use serde::Serialize;
use std::path::PathBuf;

/// The arguments of `seamline bench`.
#[derive(Args)]
pub struct Bench {
    /// Ranks and tokens to time, as in 8:1,2,4
    #[arg(default_values = ["8:1,2,4,8", "2:1,4,16,32", "1:1,16,256,1024,4096"], value_parser = parse_points)]
    points: Vec<Points>,
    /// Channels of a token
    #[arg(long, default_value_t = 7168, value_parser = clap::value_parser!(u32).range(HIDDEN))]
    hidden: u32,
    /// Experts per token
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(TOP_K))]
    top_k: u32,
    /// Rounds over all ways; the median is reported
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Schedules to time beside each other; without any, the one that is taken
    #[arg(long, value_delimiter = ',', value_parser = schedule_names())]
    schedule: Vec<Schedule>,
    /// A shared library with other ways through the seam; see cli/peers/seamline_peer.h
    #[arg(long = "peer", value_name = "LIBRARY")]
    peers: Vec<PathBuf>,
    /// Times what `launch` costs the host instead, beside a bare cuLaunchKernelEx
    #[arg(long)]
    host: bool,
    /// Times what compiling the kernel of each point costs a fresh process instead; needs NVRTC, and no GPU
    #[arg(long, conflicts_with_all = ["host", "peers"])]
    jit: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// Token counts for one number of ranks.
#[derive(Clone, Debug)]
struct Points {
    ranks: u32,
    tokens: Vec<usize>,
}

fn parse_points(text: &str) -> Result<Points, String> {
    let expected = || format!("expected RANKS:TOKENS,TOKENS…, as in 8:1,2,4, and got `{text}`");
    let (ranks, tokens) = text.split_once(':').ok_or_else(expected)?;
    let ranks = ranks.parse().map_err(|_| expected())?;
    let tokens: Vec<usize> =
        tokens.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| expected())?;
    match (1..=8).contains(&ranks) && tokens.iter().all(|t| (1..=65_536).contains(t)) {
        true => Ok(Points { ranks, tokens }),
        false => Err("ranks are in 1..=8 and tokens in 1..=65536".to_owned()),
    }
}

/// What was measured of one way at one point.
#[derive(Debug, Serialize)]
pub struct Measurement {
    ranks: u32,
    tokens: usize,
    way: String,
    /// Microseconds per launch of all ranks; a median of replays per round. Empty if it could not run.
    microseconds: Vec<f64>,
    /// Relative L2 error against f64 of residual_out and norm_out, the worst rank's; absent where it was not looked at.
    errors: Option<[f64; 2]>,
    /// Whether the bits are the reference's; seamline's only.
    exact: Option<bool>,
    /// Why it could not run.
    note: Option<String>,
}

/// Median, least and most.
fn spread(figures: &[f64]) -> [Option<f64>; 3] {
    let figure = |which: fn(f64, f64) -> f64| figures.iter().copied().reduce(which);
    [median(figures), figure(f64::min), figure(f64::max)]
}

/// The middle one; of an even number, the upper of the two.
fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// All of it, with what it was measured on.
#[derive(Debug, Serialize)]
struct Report<'a> {
    device: String,
    hidden: u32,
    top_k: u32,
    measurements: &'a [Measurement],
}

impl Bench {
    /// Runs the command.
    pub fn run(self) -> Result<Verdict> {
        if self.jit {
            return jit::run(&self.points, self.hidden, self.top_k, self.rounds, self.json);
        }
        let context = seamline::cuda::context(0)?;
        if self.host {
            return host::run(&context, self.json);
        }
        let libraries = self.peers.iter().map(|p| Library::open(p)).collect::<Result<Vec<_>>>()?;
        let mut all = Vec::new();
        for points in &self.points {
            for tokens in &points.tokens {
                all.extend(self.point(&context, &libraries, points.ranks, *tokens)?);
            }
        }
        let device = context.name().context("cannot read the device's name")?;
        let wrong = all.iter().any(|m| m.exact == Some(false));
        match self.json {
            true => {
                output::json(&Report { device, hidden: self.hidden, top_k: self.top_k, measurements: &all })?
            }
            false => output::print(&format!(
                "{device}, H = {}, K = {}, bf16, f32 weights, shared expert; us per launch of all ranks\n\n{}",
                self.hidden,
                self.top_k,
                table(&all)
            ))?,
        }
        Ok(if wrong { Verdict::Bad } else { Verdict::Good })
    }

    /// Every way at one point, in turn, over and over.
    fn point(
        &self,
        context: &std::sync::Arc<CudaContext>,
        libraries: &[Library],
        ranks: u32,
        tokens: usize,
    ) -> Result<Vec<Measurement>> {
        let streams = Streams::new(context, ranks)?;
        let seam = Seam::new(&streams, self.hidden, self.top_k, tokens)?;
        let mut ways = seam.ways(context, &self.schedule)?;
        for library in libraries {
            ways.extend(library.ways(&seam)?);
        }
        let mut measured: Vec<(Measurement, Option<Captured>)> = Vec::new();
        for way in &ways {
            let mut measurement = Measurement {
                ranks,
                tokens,
                way: way.name.clone(),
                microseconds: Vec::new(),
                errors: None,
                exact: None,
                note: None,
            };
            let captured = match &way.launch {
                Ok(launch) => Some(Captured::new(&streams, launch.as_ref())?),
                Err(why) => {
                    measurement.note = Some(why.clone());
                    None
                }
            };
            measured.push((measurement, captured));
        }
        for round in 0..self.rounds {
            for ((measurement, captured), way) in measured.iter_mut().zip(&ways) {
                let Some(captured) = captured else { continue };
                seam.poison(&streams)?;
                measurement.microseconds.push(captured.time(&streams)?);
                if round == 0 {
                    let (errors, exact) = seam.verify(&streams)?;
                    measurement.errors = errors;
                    measurement.exact = if way.ours { exact } else { None };
                }
            }
        }
        Ok(measured.into_iter().map(|(measurement, _)| measurement).collect())
    }
}

fn table(all: &[Measurement]) -> Table {
    let mut table = Table::new(&[
        "N",
        "T",
        "way",
        "us",
        "min",
        "max",
        "bits",
        "error residual_out",
        "error norm_out",
        "",
    ]);
    for m in all {
        let us = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.2}"));
        let error = |i: usize| m.errors.map_or_else(String::new, |e| format!("{:.2e}", e[i]));
        let exact = match m.exact {
            Some(true) => "equal",
            Some(false) => "DIFFER",
            None => "",
        };
        let numbers = spread(&m.microseconds).map(us);
        let head = [m.ranks.to_string(), m.tokens.to_string(), m.way.clone()];
        let tail = [exact.to_owned(), error(0), error(1), m.note.clone().unwrap_or_default()];
        table.row(head.into_iter().chain(numbers).chain(tail));
    }
    table
}
