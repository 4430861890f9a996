//! Runs a pattern on a workload, on whatever a group of ranks stands for.

mod device;

use anyhow::{Context, Result, bail};
pub use device::DeviceBuffer;
use seamline::args::{Arg, ArgList};
use seamline::{Graph, Input, Output, Prepare, Queue, Rank, untyped};
use seamline_codegen::reference::Buffer;
use seamline_codegen::workload::{Argument, Workload};
use seamline_codegen::{ParamId, Program};
use std::time::{Duration, Instant};

/// What every rank stored, and how long that took on the host.
pub struct Ran {
    /// Per rank and output.
    pub outputs: Vec<Vec<Buffer>>,
    /// Compiling, loading, allocating.
    pub prepared_in: Duration,
    /// From the launch until the results were there.
    pub ran_in: Duration,
}

/// Prepares `graph` on `ranks`, which are a whole group, and launches `workload` once.
pub fn execute(graph: &'static Graph, program: &Program, ranks: &[Rank], workload: &Workload) -> Result<Ran> {
    let mut options = Prepare::new(workload.tokens()).hidden(program.dims.hidden).dtype(program.dims.dtype);
    if graph.has_top_k() {
        options = options.top_k(program.dims.top_k);
    }
    let start = Instant::now();
    let kernels = untyped::prepare_all(graph, ranks, &options)?;
    let prepared_in = start.elapsed();

    let mut outputs: Vec<_> = (0..ranks.len()).map(|rank| unwritten(program, workload, rank)).collect();
    let start = Instant::now();
    match ranks.first().and_then(Rank::context) {
        None => {
            let bundles = outputs.iter_mut().enumerate().map(|(rank, outputs)| {
                let arguments = workload.rank(rank);
                bundle(program, arguments, |at| tensor(&arguments[at]).map(Input::from), outputs)
            });
            untyped::launch_all(&kernels, [Queue::host()], workload.tokens(), bundles)?;
        }
        Some(context) => {
            // Of its own each, since a rank that waits must not keep the others from running.
            let new_stream = |_| context.new_stream().context("cannot make a stream");
            let streams = ranks.iter().map(new_stream).collect::<Result<Vec<_>>>()?;
            let mut inputs = Vec::new();
            let mut results = Vec::new();
            for (rank, stream) in streams.iter().enumerate() {
                let copy =
                    |argument| tensor(argument).map(|buffer| DeviceBuffer::copy(stream, buffer)).transpose();
                inputs.push(workload.rank(rank).iter().map(copy).collect::<Result<Vec<_>>>()?);
                let copy = |buffer| DeviceBuffer::copy(stream, buffer);
                results.push(outputs[rank].iter().map(copy).collect::<Result<Vec<_>>>()?);
            }
            context.synchronize()?;
            let bundles = results.iter_mut().zip(&inputs).enumerate().map(|(rank, (results, inputs))| {
                bundle(program, workload.rank(rank), |at| inputs[at].as_ref().map(Input::from), results)
            });
            untyped::launch_all(&kernels, &streams, workload.tokens(), bundles)?;
            for (rank, stream) in streams.iter().enumerate() {
                for (result, output) in results[rank].iter().zip(&mut outputs[rank]) {
                    result.read(stream, output)?;
                }
            }
        }
    }
    if let Some(fault) = ranks.iter().find_map(|rank| rank.status().map(|status| status.fault).transpose()) {
        bail!("{}", fault?);
    }
    Ok(Ran { outputs, prepared_in, ran_in: start.elapsed() })
}

/// Memory for the outputs: what it overwrites where it is in place, else a pattern that shows what nobody wrote.
fn unwritten(program: &Program, workload: &Workload, rank: usize) -> Vec<Buffer> {
    let len = workload.tokens() * program.dims.hidden as usize;
    let output = |output: &seamline_codegen::program::BoundOutput| {
        let mut buffer = Buffer::new(output.dtype, len);
        match output.in_place.and_then(|id| tensor(&workload.rank(rank)[id.0 as usize])) {
            Some(input) => {
                let bytes = buffer.bytes().len();
                buffer.bytes_mut().copy_from_slice(&input.bytes()[..bytes]);
            }
            None => buffer.bytes_mut().fill(0xA5),
        }
        buffer
    };
    program.outputs.iter().map(output).collect()
}

fn tensor(argument: &Argument) -> Option<&Buffer> {
    match argument {
        Argument::Tensor(buffer) => Some(buffer),
        Argument::Absent | Argument::Scalar(_) => None,
    }
}

/// The arguments of one rank, in the order of the graph: parameters, then outputs that are not in place.
fn bundle<'a, O>(
    program: &Program,
    arguments: &[Argument],
    input: impl Fn(usize) -> Option<Input<'a>>,
    outputs: &'a mut [O],
) -> ArgList<'a>
where
    Output<'a>: From<&'a mut O>,
{
    let mut outputs: Vec<Option<&'a mut O>> = outputs.iter_mut().map(Some).collect();
    let in_place = |at| program.outputs.iter().position(|o| o.in_place == Some(ParamId(at as u32)));
    let mut list = ArgList::new();
    for (at, argument) in arguments.iter().enumerate() {
        list.push(match (in_place(at).and_then(|output| outputs[output].take()), argument, input(at)) {
            (Some(output), ..) => Arg::InPlace(output.into()),
            (None, Argument::Scalar(value), _) => Arg::Scalar(*value),
            (None, _, Some(input)) => Arg::Input(input),
            (None, _, None) => Arg::Absent,
        });
    }
    list.extend(outputs.into_iter().flatten().map(|output| Arg::Output(output.into())));
    list
}
