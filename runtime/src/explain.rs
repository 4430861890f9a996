//! How a launch will run, in words and numbers.

use crate::args::signature::Kind;
use crate::kernel::Inner;
use seamline_codegen::schedule::{LaunchShape, Traffic};
use std::fmt;
use std::time::Duration;

/// How so many tokens are launched, in the variant with the most optional inputs, and what that costs at least.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// The pattern.
    pub pattern: String,
    /// Tokens.
    pub tokens: usize,
    /// The schedule that runs the first kernel, by its name.
    pub schedule: &'static str,
    /// Kernels that one launch queues.
    pub kernels: usize,
    /// The first kernel's entry point.
    pub entry: String,
    /// The first kernel's grid.
    pub grid: Grid,
    /// The last kernel's entry point and grid, where it has fewer tokens than those before it.
    pub last: Option<(String, Grid)>,
    /// Bytes read, every expert held by this rank.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes sent to other ranks.
    pub bytes_sent: u64,
    /// Bytes that arrive from other ranks.
    pub bytes_received: u64,
    /// The time that the bytes read and written take at the memory's peak rate, where it is known.
    pub floor: Option<Duration>,
}

/// How the threads of a kernel are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grid {
    /// Clusters.
    pub clusters: u32,
    /// CTAs of a cluster.
    pub ctas: u32,
    /// Threads of a CTA.
    pub threads: u32,
    /// Vectors of 8 channels that a thread holds of a token.
    pub vectors_per_thread: u32,
    /// Expert rows that a thread loads at once.
    pub rows_in_flight: u32,
}

impl Grid {
    fn of(shape: &LaunchShape) -> Grid {
        let geometry = &shape.geometry;
        Grid {
            clusters: shape.clusters,
            ctas: geometry.ctas,
            threads: geometry.threads,
            vectors_per_thread: geometry.vectors,
            rows_in_flight: geometry.batch,
        }
    }
}

impl Explanation {
    pub(crate) fn of(kernel: &Inner, tokens: usize) -> Explanation {
        let plan = &kernel.plan;
        let tokens = tokens.min(plan.max_tokens);
        let variant = &plan.variants[0];
        let program = variant.program();
        let tokens_u64 = tokens as u64;
        let (mut bytes_read, mut bytes_written) = (0, 0);
        for (i, argument) in plan.arguments.iter().enumerate() {
            let present = !argument.optional || variant.present().has(seamline_codegen::ParamId(i as u32));
            let bytes = if present { argument.tensor.moved(tokens_u64, program.dims.top_k) } else { 0 };
            match argument.kind {
                Kind::Input => bytes_read += bytes,
                Kind::Output => bytes_written += bytes,
                Kind::InPlace => (bytes_read, bytes_written) = (bytes_read + bytes, bytes_written + bytes),
                Kind::Scalar => {}
            }
        }
        let queued = |tokens: u64| {
            let step = variant.step(tokens);
            (variant.module().entries[step.entry].name.clone(), step.shape(tokens))
        };
        let first = plan.tokens_per_launch.min(tokens_u64).max(1);
        let (entry, shape) = queued(first);
        let left = tokens_u64 % first;
        let last = (left > 0).then(|| queued(left));
        // Of each kernel, as it is run.
        let traffic = |tokens: u64, shape: &LaunchShape| {
            let Traffic { sent, received } = shape.geometry.schedule.traffic(program, kernel.rank.index);
            (tokens * sent, tokens * received)
        };
        let (sent, received) = traffic(tokens_u64 - left, &shape);
        let (last_sent, last_received) = last.as_ref().map_or((0, 0), |(_, shape)| traffic(left, shape));
        Explanation {
            pattern: program.name.clone(),
            tokens,
            schedule: shape.geometry.schedule.name(),
            kernels: tokens_u64.div_ceil(plan.tokens_per_launch) as usize,
            entry,
            grid: Grid::of(&shape),
            last: last.map(|(entry, shape)| (entry, Grid::of(&shape))),
            bytes_read,
            bytes_written,
            bytes_sent: sent + last_sent,
            bytes_received: received + last_received,
            floor: kernel
                .rank
                .group
                .info
                .peak_bytes_per_second
                .map(|rate| Duration::from_secs_f64((bytes_read + bytes_written) as f64 / rate)),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Grid { vectors_per_thread, rows_in_flight, .. } = self.grid;
        writeln!(f, "{} of {} tokens: {}", self.pattern, self.tokens, self.schedule)?;
        let alike = self.kernels - usize::from(self.last.is_some());
        queued(f, "kernels", alike, &self.entry, self.grid)?;
        if let Some((entry, grid)) = &self.last {
            queued(f, "then", 1, entry, *grid)?;
        }
        writeln!(f, "  per thread {vectors_per_thread} x 8 channels, {rows_in_flight} expert rows at once")?;
        writeln!(f, "  memory    {} bytes read, {} written", self.bytes_read, self.bytes_written)?;
        if self.bytes_sent > 0 {
            writeln!(f, "  exchange  {} bytes sent, {} received", self.bytes_sent, self.bytes_received)?;
        }
        if let Some(floor) = self.floor {
            writeln!(f, "  floor     {:.2} us at the memory's peak rate", floor.as_secs_f64() * 1e6)?;
        }
        Ok(())
    }
}

/// The line for `count` kernels that are alike.
fn queued(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    count: usize,
    entry: &str,
    Grid { clusters, ctas, threads, .. }: Grid,
) -> fmt::Result {
    writeln!(f, "  {what:<9} {count} x {entry} ({clusters} clusters of {ctas} CTAs of {threads} threads)")
}
