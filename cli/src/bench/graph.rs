//! CUDA graphs of launches on several streams, and how long a replay takes.

use super::median;
use anyhow::{Context, Result};
use cudarc::driver::{CudaContext, CudaGraph, CudaStream, sys};
use seamline::cuda;
use std::sync::Arc;

/// Launches per rank in a graph: enough to hide the graph's own start.
const LAUNCHES: usize = 20;
/// Replays of a round, of which the first are not counted.
const REPLAYS: usize = 25;
const WARM_UP: usize = 5;

/// What a graph, and timing it, need of the driver beyond what kernels do.
const FUNCTIONS: [&str; 7] = [
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuGraphInstantiateWithFlags",
    "cuGraphUpload",
    "cuGraphLaunch",
    "cuGraphExecDestroy",
    "cuGraphDestroy",
];
/// As cudarc calls it.
const ELAPSED: &str = if sys::CUDA_VERSION >= 13000 { "cuEventElapsedTime_v2" } else { "cuEventElapsedTime" };

/// Queues one launch of the rank that is named.
pub type Launch<'a> = dyn Fn(usize) -> Result<()> + 'a;

/// A stream per rank.
pub struct Streams {
    context: Arc<CudaContext>,
    streams: Vec<Arc<CudaStream>>,
}

impl Streams {
    /// Streams for `ranks` ranks on `context`.
    pub fn new(context: &Arc<CudaContext>, ranks: u32) -> Result<Streams> {
        cuda::has(&FUNCTIONS)?;
        cuda::has(&[ELAPSED])?;
        let stream = |_| context.new_stream().context("cannot make a stream");
        Ok(Streams { context: Arc::clone(context), streams: (0..ranks).map(stream).collect::<Result<_>>()? })
    }

    /// That of `rank`.
    pub fn of(&self, rank: usize) -> &Arc<CudaStream> {
        &self.streams[rank]
    }

    /// How many there are.
    pub fn ranks(&self) -> usize {
        self.streams.len()
    }

    /// Waits for all that was queued.
    pub fn synchronize(&self) -> Result<()> {
        self.context.synchronize().context("the GPU reports an error")
    }
}

/// Launches of all ranks, captured.
pub struct Captured(CudaGraph);

impl Captured {
    /// Captures [`LAUNCHES`] launches of every rank. They have run a few times before, so that nothing is loaded under capture.
    pub fn new(streams: &Streams, launch: &Launch<'_>) -> Result<Captured> {
        for _ in 0..3 {
            (0..streams.ranks()).try_for_each(launch)?;
        }
        streams.synchronize()?;
        let (first, rest) = streams.streams.split_first().context("no rank")?;
        first
            .begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .context("cannot capture")?;
        let captured = Self::queue(first, rest, streams.ranks(), launch);
        let graph =
            first.end_capture(sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
        captured?;
        let graph = graph.context("cannot end the capture")?.context("nothing was captured")?;
        graph.upload().context("cannot upload the graph")?;
        Ok(Captured(graph))
    }

    fn queue(first: &CudaStream, rest: &[Arc<CudaStream>], ranks: usize, launch: &Launch<'_>) -> Result<()> {
        for stream in rest {
            stream.join(first).context("cannot fork the capture")?;
        }
        for _ in 0..LAUNCHES {
            (0..ranks).try_for_each(launch)?;
        }
        for stream in rest {
            first.join(stream).context("cannot join the capture")?;
        }
        Ok(())
    }

    /// One round: the median over replays, in microseconds per launch of all ranks.
    pub fn time(&self, streams: &Streams) -> Result<f64> {
        let timed = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let mut times = Vec::with_capacity(REPLAYS);
        for _ in 0..REPLAYS {
            let start = streams.of(0).record_event(timed)?;
            self.0.launch().context("cannot launch the graph")?;
            let end = streams.of(0).record_event(timed)?;
            end.synchronize().context("the GPU reports an error")?;
            times.push(f64::from(start.elapsed_ms(&end)?) * 1e3 / LAUNCHES as f64);
        }
        median(&times[WARM_UP..]).context("no replay was counted")
    }
}
