//! A rank's control words.

use crate::error::Error;
use crate::group::memory::{Mirror, Own};
use crate::group::status::{Fault, Status};
use seamline_codegen::abi::STATUS_WORDS;
use std::sync::atomic::Ordering;

/// The last of the status words: row indices outside `[-1, P)`.
const OUT_OF_RANGE: usize = STATUS_WORDS - 1;

/// A rank's control words, and their mirror that the host reads.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) status: Own,
    pub(crate) mirror: Mirror,
}

impl Control {
    /// Words of each of the two.
    pub(crate) const WORDS: u64 = STATUS_WORDS as u64;

    /// Reads the mirror: one load where all is well.
    #[inline]
    pub(crate) fn fault(&self) -> Option<Fault> {
        let words = self.mirror.words();
        // The kernel releases the flag after the other words.
        if words[0].load(Ordering::Acquire) == 0 {
            return None;
        }
        let word = |i: usize| words[i].load(Ordering::Relaxed);
        Some(Fault { rank: word(1), peer: word(2), slot: word(3), epoch: word(4) })
    }

    pub(crate) fn read(&self) -> Result<Status, Error> {
        let out_of_range = self.status.read(OUT_OF_RANGE)?;
        Ok(Status { fault: self.fault(), out_of_range: out_of_range.into() })
    }

    /// For executors on the host whose kernels do not count.
    pub(crate) fn count_out_of_range(&self, indices: u64) {
        if let Some(words) = self.status.cells() {
            words[OUT_OF_RANGE].fetch_add(indices as u32, Ordering::Relaxed);
        }
    }

    /// As if no launch had been.
    pub(crate) fn reset(&self) -> Result<(), Error> {
        self.status.fill(0)?;
        self.mirror.own().fill(0)
    }
}
