//! What a new user copies: a seam, written as a fn, and launched on two ranks.
//!
//! `cargo run --example quickstart` runs it on a GPU where there is one, and else on the CPU.

use cudarc::driver::CudaContext;
use seamline::prelude::*;
use std::{error::Error, sync::Arc};

/// Behind a tensor-parallel projection: sum over the ranks, add the residual, norm for the next layer.
#[fused_pattern(dtype = bf16)]
pub fn my_seam(partial: Tokens, mut residual: Tokens, gamma: Channels, eps: Scalar) -> (Tokens, Tokens) {
    residual += all_reduce(partial);
    let norm_out = rms_norm(residual, gamma, eps);
    (residual, norm_out)
}

/// What a rank stored: residual and norm_out.
type Stored = (Vec<bf16>, Vec<bf16>);

const RANKS: usize = 2;
const TOKENS: usize = 3;
const HIDDEN: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let results = match prepared_on_gpu() {
        Ok((context, kernels)) => on_gpu(&context, &kernels)?,
        // No driver, no NVRTC, a GPU that is too old: the error says which.
        Err(why) => on_cpu().inspect(|_| println!("on the CPU: {why}"))?,
    };
    for (rank, (residual, norm_out)) in results.iter().enumerate() {
        // 0.5, and 1 + 2 from the ranks; a row of equal values norms to 1, times gamma.
        println!("rank {rank}: residual {}, norm_out {}", residual[0], norm_out[0]);
        assert_eq!((residual[0].to_f32(), norm_out[0].to_f32()), (3.5, 2.0));
    }
    Ok(())
}

fn filled(value: f32, rows: usize) -> Vec<bf16> {
    vec![bf16::from_f32(value); rows * HIDDEN]
}

fn prepared_on_gpu() -> Result<(Arc<CudaContext>, Vec<Kernel<MySeam>>), seamline::Error> {
    let context = seamline::cuda::context(0)?;
    let ranks = Group::loopback(&context, RANKS as u32)?;
    let kernels = MySeam::prepare_all(&ranks, &Prepare::new(TOKENS).hidden(HIDDEN as u32))?;
    Ok((context, kernels))
}

fn on_gpu(context: &Arc<CudaContext>, kernels: &[Kernel<MySeam>]) -> Result<Vec<Stored>, Box<dyn Error>> {
    let streams = (0..RANKS).map(|_| context.new_stream()).collect::<Result<Vec<_>, _>>()?;
    let mut memory = Vec::new();
    for (rank, stream) in streams.iter().enumerate() {
        let copy = |value, rows| stream.clone_htod(&filled(value, rows));
        let (partial, residual) = (copy(rank as f32 + 1.0, TOKENS)?, copy(0.5, TOKENS)?);
        memory.push((partial, residual, copy(2.0, 1)?, copy(0.0, TOKENS)?));
    }
    let args = memory.iter_mut().map(|(partial, residual, gamma, norm_out)| MySeamArgs {
        tokens: TOKENS,
        partial: (&*partial).into(),
        residual: residual.into(),
        gamma: (&*gamma).into(),
        eps: 1e-6,
        norm_out: norm_out.into(),
    });
    launch_all(kernels, &streams, args)?;
    let read = streams.iter().zip(&memory);
    read.map(|(s, (_, residual, _, norm_out))| Ok((s.clone_dtoh(residual)?, s.clone_dtoh(norm_out)?)))
        .collect()
}

fn on_cpu() -> Result<Vec<Stored>, Box<dyn Error>> {
    // With the feature `sim`, `Group::simulated` runs the generated CUDA itself.
    let ranks = Group::reference(RANKS as u32)?;
    let kernels = MySeam::prepare_all(&ranks, &Prepare::new(TOKENS).hidden(HIDDEN as u32))?;
    let partials: Vec<_> = (0..RANKS).map(|rank| filled(rank as f32 + 1.0, TOKENS)).collect();
    let (gamma, mut results) = (filled(2.0, 1), vec![(filled(0.5, TOKENS), filled(0.0, TOKENS)); RANKS]);
    let args = partials.iter().zip(&mut results).map(|(partial, (residual, norm_out))| MySeamArgs {
        tokens: TOKENS,
        partial: partial.into(),
        residual: residual.into(),
        gamma: (&gamma).into(),
        eps: 1e-6,
        norm_out: norm_out.into(),
    });
    launch_all(&kernels, [Queue::host()], args)?;
    Ok(results)
}
