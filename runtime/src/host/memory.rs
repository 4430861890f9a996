//! Words of the host's own memory.

use crate::error::{Error, ErrorKind};
use crate::group::memory::Words;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};

/// 16-byte aligned, as vector accesses want it. Host executors write them through their address, so they are cells.
#[derive(Debug)]
pub(crate) struct HostWords {
    cells: Box<[UnsafeCell<u128>]>,
    count: usize,
}

// SAFETY: every access is through atomics or, by the executor, in a run that the group serialises; control words, which
// `status` reads during a run, are through atomics there too.
unsafe impl Sync for HostWords {}

impl HostWords {
    pub(crate) fn new(count: u64, word: u32) -> Result<HostWords, Error> {
        let too_much = || Error::from(ErrorKind::HostMemory { bytes: count.saturating_mul(4) });
        let count = usize::try_from(count).map_err(|_| too_much())?;
        let four = u128::from(word) * 0x1_0000_0001_0000_0001_0000_0001;
        let mut cells = Vec::new();
        cells.try_reserve_exact(count.div_ceil(4)).map_err(|_| too_much())?;
        cells.resize_with(count.div_ceil(4), || UnsafeCell::new(four));
        Ok(HostWords { cells: cells.into(), count })
    }

    pub(crate) fn words(&self) -> &[AtomicU32] {
        // SAFETY: the cells are at least so many words, aligned, initialised, alive as long as the borrow,
        // and may be changed through a shared reference, as atomics are.
        unsafe { std::slice::from_raw_parts(self.cells.as_ptr().cast(), self.count) }
    }
}

impl Words for HostWords {
    fn address(&self) -> u64 {
        self.cells.as_ptr().expose_provenance() as u64
    }

    fn bytes(&self) -> u64 {
        self.count as u64 * 4
    }

    fn fill(&self, word: u32) -> Result<(), Error> {
        self.words().iter().for_each(|w| w.store(word, Ordering::Relaxed));
        Ok(())
    }

    fn read(&self, word: usize) -> Result<u32, Error> {
        Ok(self.words()[word].load(Ordering::Relaxed))
    }

    fn cells(&self) -> Option<&[AtomicU32]> {
        Some(self.words())
    }
}
