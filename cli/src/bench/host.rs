//! What a launch costs the host, beside a bare `cuLaunchKernelEx` with the same arguments.

use super::graph::Streams;
use super::median;
use super::seam::Seam;
use crate::table::Table;
use crate::{Verdict, output};
use anyhow::{Context, Result};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use half::bf16;
use seamline::cuda::__private::{driver_launch, launch_raw};
use seamline::patterns::{MoeFinalizeArResidualRmsnorm as Moe, MoeFinalizeArResidualRmsnormArgs as Args};
use seamline::prelude::*;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;

/// Launches between two looks at the clock; few enough that the driver's queue never fills.
const BURST: usize = 200;
const BURSTS: usize = 51;
/// Words of the seam's kernel on one rank.
const WORDS: usize = 12;
const HIDDEN: usize = 7168;
const TOP_K: usize = 8;

/// One way to launch.
#[derive(Debug, Serialize)]
struct Cost {
    way: &'static str,
    /// The median burst's, per launch.
    nanoseconds: f64,
    /// To the bare call.
    ratio: f64,
}

/// Runs `bench --host`.
pub fn run(context: &Arc<CudaContext>, json: bool) -> Result<Verdict> {
    let streams = Streams::new(context, 1)?;
    let seam = Seam::new(&streams, HIDDEN as u32, TOP_K as u32, 1)?;
    let options =
        Prepare::new(1).hidden(HIDDEN as u32).top_k(TOP_K as u32).dtype(DType::Bf16).variants(&[&[]]);
    let kernels = Moe::prepare_all(&Group::loopback(context, 1)?, &options)?;
    let kernel = kernels.first().context("no kernel was prepared")?;
    let stream = streams.of(0);
    let launch = driver_launch(kernel, stream, seam.bundle(0))?;
    let words: [u64; WORDS] =
        launch.args.as_slice().try_into().context("the kernel's parameter has other words")?;
    let mut slices = Slices::new(stream)?;

    let mut measured = [
        ("bare cuLaunchKernelEx", Vec::new()),
        ("launch, raw addresses", Vec::new()),
        ("launch, cudarc slices", Vec::new()),
        ("launch, cudarc slices with event tracking", Vec::new()),
    ];
    for _ in 0..BURSTS {
        for (way, (_, times)) in measured.iter_mut().enumerate() {
            streams.synchronize()?;
            set_event_tracking(context, way == 3);
            let start = Instant::now();
            for _ in 0..BURST {
                match way {
                    0 => {
                        let mut args = words;
                        // SAFETY: what `driver_launch` gave for this bundle, on a stream of its context.
                        unsafe { launch_raw(launch.function, &launch.config, stream.cu_stream(), &mut args) }
                            .context("cuLaunchKernelEx failed")?;
                    }
                    1 => kernel.launch(stream, seam.bundle(0))?,
                    _ => kernel.launch(stream, slices.bundle(seam.eps))?,
                }
            }
            times.push(start.elapsed().as_nanos() as f64 / BURST as f64);
        }
    }
    streams.synchronize()?;
    set_event_tracking(context, true);
    report(&measured, json)
}

/// Whether cudarc records an event for every slice that a launch uses, as it does by default once there are streams.
fn set_event_tracking(context: &CudaContext, on: bool) {
    // SAFETY: all work is on one stream, which orders it.
    unsafe {
        match on {
            true => context.enable_event_tracking(),
            false => context.disable_event_tracking(),
        }
    }
}

fn report(measured: &[(&'static str, Vec<f64>)], json: bool) -> Result<Verdict> {
    let bare = median(&measured[0].1).context("nothing was measured")?;
    let cost = |(way, times): &(&'static str, Vec<f64>)| {
        let nanoseconds = median(times).unwrap_or(f64::NAN);
        Cost { way, nanoseconds, ratio: nanoseconds / bare }
    };
    let costs: Vec<Cost> = measured.iter().map(cost).collect();
    if json {
        output::json(&costs)?;
        return Ok(Verdict::Good);
    }
    let mut table = Table::new(&["way", "ns per launch", "to the bare call"]);
    for cost in &costs {
        table.row([cost.way.to_owned(), format!("{:.0}", cost.nanoseconds), format!("{:.2}", cost.ratio)]);
    }
    output::print(&table.to_string())?;
    Ok(Verdict::Good)
}

/// The seam's arguments as cudarc's slices.
struct Slices {
    rows: CudaSlice<bf16>,
    map: CudaSlice<i32>,
    weights: CudaSlice<f32>,
    shared: CudaSlice<bf16>,
    residual_in: CudaSlice<bf16>,
    gamma: CudaSlice<bf16>,
    residual_out: CudaSlice<bf16>,
    norm_out: CudaSlice<bf16>,
}

impl Slices {
    fn new(stream: &Arc<CudaStream>) -> Result<Slices> {
        let row = || stream.alloc_zeros(HIDDEN).context("cannot allocate on the GPU");
        Ok(Slices {
            rows: stream.alloc_zeros(TOP_K * HIDDEN)?,
            map: stream.alloc_zeros(TOP_K)?,
            weights: stream.alloc_zeros(TOP_K)?,
            shared: row()?,
            residual_in: row()?,
            gamma: row()?,
            residual_out: row()?,
            norm_out: row()?,
        })
    }

    fn bundle(&mut self, eps: f32) -> Args<'_> {
        Args {
            tokens: 1,
            gemm2_out: (&self.rows).into(),
            expanded_idx_to_permuted_idx: (&self.map).into(),
            expert_scale_factor: (&self.weights).into(),
            shared_expert_output: Some((&self.shared).into()),
            residual_in: (&self.residual_in).into(),
            rms_gamma: (&self.gamma).into(),
            eps,
            residual_out: (&mut self.residual_out).into(),
            norm_out: (&mut self.norm_out).into(),
        }
    }
}
