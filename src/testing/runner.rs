//! Runs a pattern on workloads, on whatever a group of ranks stands for.

#[cfg(feature = "cuda")]
mod device;

use crate::args::{Arg, ArgList};
use crate::erased::{self, Erased};
use crate::{Error, ErrorKind, Graph, Input, Kernel, Output, Prepare, Queue, Rank, Variant};
#[cfg(feature = "cuda")]
pub use device::DeviceBuffer;
use seamline_codegen::program::BoundOutput;
use seamline_codegen::reference::Buffer;
use seamline_codegen::workload::{Argument, Workload};
use seamline_codegen::{ParamId, Program};
use std::time::{Duration, Instant};

/// A graph that is prepared on all ranks of a group, and takes workloads instead of bundles.
#[derive(Debug)]
pub struct Runner {
    ranks: Vec<Rank>,
    kernels: Vec<Kernel<Erased>>,
    /// One per rank; none on a host.
    #[cfg(feature = "cuda")]
    streams: device::Streams,
    prepared_in: Duration,
}

/// What a workload gave, and how long that took on the host.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Per rank and output: its rows, one behind the other whatever their stride.
    pub outputs: Vec<Vec<Buffer>>,
    /// From the launch until the results were there.
    pub ran_in: Duration,
}

impl Runner {
    /// Prepares `graph` on `ranks`, which are a whole group.
    ///
    /// # Errors
    /// Those of [`prepare_all`](crate::Pattern::prepare_all).
    pub fn new(graph: &'static Graph, ranks: &[Rank], options: &Prepare) -> Result<Runner, Error> {
        let start = Instant::now();
        let kernels = erased::prepare_all(graph, ranks, options)?;
        let prepared_in = start.elapsed();
        Ok(Runner {
            kernels,
            #[cfg(feature = "cuda")]
            streams: device::streams(ranks)?,
            prepared_in,
            ranks: ranks.to_vec(),
        })
    }

    /// How long compiling, loading and allocating took.
    pub fn prepared_in(&self) -> Duration {
        self.prepared_in
    }

    /// What was prepared: the programs that workloads are made for.
    pub fn variants(&self) -> &[Variant] {
        self.kernels[0].variants()
    }

    /// The most tokens of a workload.
    pub fn max_tokens(&self) -> usize {
        self.kernels[0].max_tokens()
    }

    /// Launches `workload` once, which is one of `program`, which is one of the [`variants`](Runner::variants)'.
    ///
    /// # Errors
    /// Those of [`launch_all`](crate::launch_all), and a fault of a rank. [`reset`](Runner::reset) then makes the group
    /// usable again.
    pub fn run(&self, program: &Program, workload: &Workload) -> Result<Ran, Error> {
        let ranks = 0..self.ranks.len();
        let arguments: Vec<_> = ranks.map(|rank| arguments(program, workload, rank)).collect();
        let mut outputs: Vec<_> =
            arguments.iter().map(|arguments| unwritten(program, arguments, workload.tokens())).collect();
        let start = Instant::now();
        self.launch(program, workload.tokens(), &arguments, &mut outputs)?;
        for rank in &self.ranks {
            if let Some(fault) = rank.status()?.fault {
                return Err(ErrorKind::Fault(fault).into());
            }
        }
        let ran_in = start.elapsed();
        for (output, bound) in outputs.iter_mut().flat_map(|rank| rank.iter_mut().zip(&program.outputs)) {
            if !bound.tensor.is_dense() {
                *output = Buffer::from_bytes(output.dtype(), &bound.tensor.dense(output.bytes()));
            }
        }
        Ok(Ran { outputs, ran_in })
    }

    /// Makes the group usable again after a run that failed.
    ///
    /// # Errors
    /// Those of [`reset`](crate::reset).
    pub fn reset(&self) -> Result<(), Error> {
        crate::reset(&self.ranks)
    }

    fn launch(
        &self,
        program: &Program,
        tokens: usize,
        arguments: &[&[Argument]],
        outputs: &mut [Vec<Buffer>],
    ) -> Result<(), Error> {
        #[cfg(feature = "cuda")]
        if !self.streams.is_empty() {
            return device::launch(self, program, tokens, arguments, outputs);
        }
        let bundles = outputs.iter_mut().zip(arguments).map(|(outputs, arguments)| {
            (tokens, bundle(program, arguments, |at| arguments[at].tensor().map(Input::from), outputs))
        });
        erased::launch_all(&self.kernels, [Queue::host()], bundles)
    }
}

/// Ranks that exchange nothing all take what the first one does.
fn arguments<'a>(program: &Program, workload: &'a Workload, rank: usize) -> &'a [Argument] {
    workload.rank(rank % program.dims.ranks as usize)
}

/// Memory for the outputs: what it overwrites where it is in place, else a pattern that shows what nobody wrote.
fn unwritten(program: &Program, arguments: &[Argument], tokens: usize) -> Vec<Buffer> {
    let output = |output: &BoundOutput| {
        let mut buffer = Buffer::new(output.tensor.dtype, output.tensor.elements(tokens as u64) as usize);
        match output.in_place.and_then(|id| arguments[id.0 as usize].tensor()) {
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
