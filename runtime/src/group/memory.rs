//! Memory that seamline itself owns: exchange regions, epochs and control words.

#[cfg(feature = "cuda")]
use crate::cuda::memory::{DeviceWords, PinnedWords};
use crate::error::{Error, ErrorKind};
use std::cell::UnsafeCell;
use std::sync::atomic::AtomicU32;

/// 32-bit words at an address that a kernel can reach.
#[derive(Debug)]
pub(crate) enum Memory {
    Host(HostWords),
    #[cfg(feature = "cuda")]
    Device(DeviceWords),
    /// On the host, mapped into the device's address space.
    #[cfg(feature = "cuda")]
    Pinned(PinnedWords),
}

impl Memory {
    /// Where kernels find it.
    pub(crate) fn address(&self) -> u64 {
        match self {
            Memory::Host(words) => words.address(),
            #[cfg(feature = "cuda")]
            Memory::Device(words) => words.address(),
            #[cfg(feature = "cuda")]
            Memory::Pinned(words) => words.address(),
        }
    }

    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Memory::Host(words) => words.count as u64 * 4,
            #[cfg(feature = "cuda")]
            Memory::Device(words) => words.bytes(),
            #[cfg(feature = "cuda")]
            Memory::Pinned(words) => words.bytes(),
        }
    }

    /// Sets every word to `word`. No kernel may be using it.
    pub(crate) fn fill(&self, word: u32) -> Result<(), Error> {
        match self {
            Memory::Host(words) => words.fill(word),
            #[cfg(feature = "cuda")]
            Memory::Device(words) => words.fill(word)?,
            #[cfg(feature = "cuda")]
            Memory::Pinned(words) => words.fill(word),
        }
        Ok(())
    }

    /// Its words, where the host can read them while kernels write them.
    pub(crate) fn words(&self) -> Option<&[AtomicU32]> {
        match self {
            Memory::Host(words) => Some(words.words()),
            #[cfg(feature = "cuda")]
            Memory::Device(_) => None,
            #[cfg(feature = "cuda")]
            Memory::Pinned(words) => Some(words.words()),
        }
    }
}

/// Words of the host's own memory, 16-byte aligned as vector accesses want it. Host executors write them
/// through their address, so they are cells.
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

    fn address(&self) -> u64 {
        self.cells.as_ptr().expose_provenance() as u64
    }

    fn words(&self) -> &[AtomicU32] {
        // SAFETY: the cells are at least so many words, aligned, initialised, alive as long as the borrow,
        // and may be changed through a shared reference, as atomics are.
        unsafe { std::slice::from_raw_parts(self.cells.as_ptr().cast(), self.count) }
    }

    fn fill(&self, word: u32) {
        self.words().iter().for_each(|w| w.store(word, std::sync::atomic::Ordering::Relaxed));
    }
}
