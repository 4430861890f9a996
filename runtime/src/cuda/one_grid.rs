//! All ranks of a device in one grid: the row of a block is its rank.
//!
//! Tools that watch every access run kernels one at a time, so that a kernel which polls for another one
//! hangs. In one grid the ranks' blocks are resident together.

use super::DriverContext;
use super::launch::{Config, Ready, capturing, launch_raw};
use crate::backend::pieces;
use crate::error::{Error, ErrorKind};
use crate::group::memory::Words;
use cudarc::driver::result;

/// Queues `all`, one per rank in rank order, and waits: the kernels read their arguments from memory that is
/// freed then.
pub(super) fn queue(all: &[Ready<'_>]) -> Result<(), Error> {
    let Some(first) = all.first() else { return Ok(()) };
    if capturing(first.stream) || all.iter().any(|ready| ready.variant_index != first.variant_index) {
        return Err(ErrorKind::OneGrid.into());
    }
    let variant = first.variant;
    for (token, tokens) in pieces(first.tokens, first.tokens_per_kernel) {
        let step = variant.step(tokens);
        let words: Vec<u64> = all.iter().flat_map(|ready| ready.pack(step, token, tokens)).collect();
        let arguments = first.words(2 * words.len() as u64)?;
        let doing = || format!("launching `{}` for all ranks in one grid", variant.program().name);
        let config =
            Config { rows: all.len() as u32, ..Config::planned(&first.code.placement, &step.shape(tokens)) };
        // One-grid entries follow the others, in the same order.
        let function = first.function(variant.module().entries.len() / 2 + step.entry);
        // SAFETY: the allocation is as long as `words` and lives until the stream has been waited for; the
        // kernel takes its address. For the rest see `Ready::queue`.
        unsafe {
            result::memcpy_htod_sync(arguments.address(), &words).doing(doing)?;
            launch_raw(function.cu_function(), &config, first.stream, &mut [arguments.address()])
                .doing(doing)?;
            result::stream::synchronize(first.stream).doing(doing)?;
        }
    }
    Ok(())
}
