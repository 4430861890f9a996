//! One case of the MoE seam: its memory on the GPU, and seamline's ways through it.

use super::graph::{Launch, Streams};
use anyhow::{Context, Result, bail};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr};
use half::bf16;
use seamline::patterns::{MoeFinalizeArResidualRmsnorm as Moe, MoeFinalizeArResidualRmsnormArgs as Args};
use seamline::prelude::*;
use seamline::testing::{DeviceBuffer, Expected, Kind, Workload};
use seamline::{DType, Kernel, Schedule};
use seamline_codegen::reference::{Buffer, ideal};
use seamline_codegen::workload::Argument;
use seamline_codegen::{Dims, Presence, Program, Request};
use std::sync::Arc;

/// Results are compared with the reference up to here; beyond, that would take longer than the rest.
const VERIFIED_TOKENS: usize = 256;

/// A way through the seam.
pub struct Way<'a> {
    /// What the table calls it.
    pub name: String,
    /// Whether it is seamline's.
    pub ours: bool,
    /// Queues it, or why it cannot run.
    pub launch: Result<Box<Launch<'a>>, String>,
}

/// Device addresses of one rank's arguments.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    pub gemm2_out: u64,
    pub row_map: u64,
    pub weights: u64,
    pub weights_bf16: u64,
    pub shared: u64,
    pub residual_in: u64,
    pub gamma: u64,
    pub residual_out: u64,
    pub norm_out: u64,
}

/// One case, on the GPU.
pub struct Seam {
    pub hidden: usize,
    pub top_k: usize,
    pub tokens: usize,
    /// P.
    pub rows: usize,
    pub eps: f32,
    pub ranks: Vec<Addresses>,
    program: Program,
    streams: Vec<Arc<CudaStream>>,
    outputs: Vec<[CudaSlice<bf16>; 2]>,
    expected: Option<Expected>,
    /// What the addresses lead to.
    _inputs: Vec<DeviceBuffer>,
    _weights_bf16: Vec<CudaSlice<bf16>>,
}

impl Seam {
    /// As an MoE engine makes it, for as many ranks as there are streams.
    pub fn new(streams: &Streams, hidden: u32, top_k: u32, tokens: usize) -> Result<Seam> {
        let graph = Moe::GRAPH;
        let ranks = streams.ranks() as u32;
        let request = Request { hidden: Some(hidden), top_k: Some(top_k), dtype: Some(DType::Bf16), ranks };
        let program = graph.bind(&Dims::bind(graph, &request, Presence::ALL)?)?;
        let workload = Workload::new(&program, tokens, 1, Kind::KIMI_K2);
        let mut seam = Seam {
            hidden: hidden as usize,
            top_k: top_k as usize,
            tokens,
            rows: 0,
            eps: workload.rank(0).iter().find_map(scalar).context("the seam has a scalar")?,
            ranks: Vec::new(),
            expected: (tokens <= VERIFIED_TOKENS).then(|| Expected::new(&program, &workload)).transpose()?,
            program,
            streams: (0..streams.ranks()).map(|r| Arc::clone(streams.of(r))).collect(),
            outputs: Vec::new(),
            _inputs: Vec::new(),
            _weights_bf16: Vec::new(),
        };
        for rank in 0..streams.ranks() {
            seam.add_rank(rank, workload.rank(rank))?;
        }
        streams.synchronize()?;
        Ok(seam)
    }

    fn add_rank(&mut self, rank: usize, arguments: &[Argument]) -> Result<()> {
        let stream = &self.streams[rank];
        let tensors: Vec<&Buffer> = arguments.iter().filter_map(Argument::tensor).collect();
        let [rows, map, weights, shared, residual, gamma] = tensors[..] else {
            bail!("the seam has six tensors, and the workload {}", tensors.len())
        };
        self.rows = rows.len() / self.hidden;
        let mut address = |buffer: &Buffer| -> Result<u64> {
            let copy = DeviceBuffer::copy(stream, buffer)?;
            let address = copy.address(stream);
            self._inputs.push(copy);
            Ok(address)
        };
        let rounded: Vec<bf16> = weights.to_f32().into_iter().map(bf16::from_f32).collect();
        let weights_bf16 = stream.clone_htod(&rounded).context("cannot copy to the GPU")?;
        let output =
            || stream.alloc_zeros::<bf16>(self.tokens * self.hidden).context("cannot allocate on the GPU");
        let outputs = [output()?, output()?];
        self.ranks.push(Addresses {
            gemm2_out: address(rows)?,
            row_map: address(map)?,
            weights: address(weights)?,
            weights_bf16: weights_bf16.device_ptr(stream).0,
            shared: address(shared)?,
            residual_in: address(residual)?,
            gamma: address(gamma)?,
            residual_out: outputs[0].device_ptr(stream).0,
            norm_out: outputs[1].device_ptr(stream).0,
        });
        self.outputs.push(outputs);
        self._weights_bf16.push(weights_bf16);
        Ok(())
    }

    /// The stream of `rank`.
    pub fn stream(&self, rank: usize) -> &Arc<CudaStream> {
        &self.streams[rank]
    }

    /// Seamline's ways: with the trigger at the end, and early; by each of the schedules, if any are given.
    pub fn ways(&self, context: &Arc<CudaContext>, schedules: &[Schedule]) -> Result<Vec<Way<'_>>> {
        let options =
            Prepare::new(self.tokens).hidden(self.hidden as u32).top_k(self.top_k as u32).dtype(DType::Bf16);
        let options = options.variants(&[&[]]);
        let mut ways = vec![("seamline".to_owned(), options.clone())];
        if !schedules.is_empty() {
            let by = |schedule: &Schedule| {
                (format!("seamline, {}", schedule.name()), options.clone().schedule(*schedule))
            };
            ways = schedules.iter().map(by).collect();
        }
        let triggers = |(name, options): (String, Prepare)| {
            [(name.clone(), options.clone()), (name + ", early trigger", options.early_trigger())]
        };
        let way = |(name, options): (String, Prepare)| {
            let group = Group::loopback(context, self.streams.len() as u32)?;
            let launch = match Moe::prepare_all(&group, &options) {
                Ok(kernels) => {
                    let launch = move |rank: usize| Ok(self.launch(&kernels[rank], rank)?);
                    Ok(Box::new(launch) as Box<Launch<'_>>)
                }
                Err(error) => Err(error.to_string()),
            };
            Ok(Way { name, ours: true, launch })
        };
        ways.into_iter().flat_map(triggers).map(way).collect()
    }

    fn launch(&self, kernel: &Kernel<Moe>, rank: usize) -> Result<(), seamline::Error> {
        kernel.launch(&self.streams[rank], self.bundle(rank))
    }

    /// One rank's arguments.
    pub fn bundle(&self, rank: usize) -> Args<'_> {
        let at = &self.ranks[rank];
        let (row, index) = (self.tokens * self.hidden, self.tokens * self.top_k);
        // SAFETY: the addresses are of slices that `self` owns, of these dtypes and lengths; nothing else uses them while launches run,
        // because every reader of results waits for the device first.
        unsafe {
            Args {
                tokens: self.tokens,
                gemm2_out: Input::raw(at.gemm2_out, DType::Bf16, self.rows * self.hidden),
                expanded_idx_to_permuted_idx: Input::raw(at.row_map, DType::I32, index),
                expert_scale_factor: Input::raw(at.weights, DType::F32, index),
                shared_expert_output: Some(Input::raw(at.shared, DType::Bf16, row)),
                residual_in: Input::raw(at.residual_in, DType::Bf16, row),
                rms_gamma: Input::raw(at.gamma, DType::Bf16, self.hidden),
                eps: self.eps,
                residual_out: Output::raw(at.residual_out, DType::Bf16, row),
                norm_out: Output::raw(at.norm_out, DType::Bf16, row),
            }
        }
    }

    /// Fills the outputs with NaN, so that what a way does not write shows.
    pub fn poison(&self, streams: &Streams) -> Result<()> {
        let poison = vec![bf16::NAN; self.tokens * self.hidden];
        for (rank, outputs) in self.outputs.iter().enumerate() {
            for output in outputs {
                // SAFETY: the slice is as long as `poison`, and no launch runs: the last round ended with a wait.
                unsafe {
                    let to = output.device_ptr(streams.of(rank)).0;
                    cudarc::driver::result::memcpy_htod_sync(to, &poison)
                        .context("cannot fill the outputs")?;
                }
            }
        }
        streams.synchronize()
    }

    /// The errors of what stands in the outputs, and whether it has the reference's bits.
    pub fn verify(&self, streams: &Streams) -> Result<(Option<[f64; 2]>, Option<bool>)> {
        let Some(Expected { exact, ideal }) = &self.expected else { return Ok((None, None)) };
        streams.synchronize()?;
        let mut errors = [0f64; 2];
        let mut equal = true;
        for (rank, outputs) in self.outputs.iter().enumerate() {
            for (i, output) in outputs.iter().enumerate() {
                let mut buffer = Buffer::new(self.program.outputs[i].dtype, self.tokens * self.hidden);
                let elements = buffer.as_mut_slice::<bf16>().context("an output of another dtype")?;
                streams.of(rank).memcpy_dtoh(output, elements).context("cannot copy from the GPU")?;
                streams.of(rank).synchronize().context("the GPU reports an error")?;
                errors[i] = errors[i].max(ideal::relative_l2(&buffer, &ideal[rank][i]));
                equal &= buffer == exact[rank].outputs[i];
            }
        }
        Ok((Some(errors), Some(equal)))
    }
}

fn scalar(argument: &Argument) -> Option<f32> {
    match argument {
        Argument::Scalar(x) => Some(*x),
        _ => None,
    }
}
