//! Memory that seamline itself owns: exchange regions, epochs and control words.

use crate::error::Error;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// 32-bit words at an address that kernels reach, freed when this is dropped.
pub(crate) trait Words: fmt::Debug + Send + Sync {
    /// Where kernels find them.
    fn address(&self) -> u64;

    /// Their size in bytes.
    fn bytes(&self) -> u64;

    /// Sets every word to `word`. No kernel may be using them.
    fn fill(&self, word: u32) -> Result<(), Error>;

    /// A word as it is now, whatever is queued or running.
    fn read(&self, word: usize) -> Result<u32, Error>;

    /// The words themselves, where the host can reach them while kernels do.
    fn cells(&self) -> Option<&[AtomicU32]>;
}

/// Memory of a rank's own: the rank alone fills it, and it is freed when nobody has it mapped any more.
#[derive(Debug)]
pub(crate) struct Own(Arc<dyn Words>);

impl Own {
    pub(crate) fn new(words: impl Words + 'static) -> Own {
        Own(Arc::new(words))
    }

    /// Where kernels of the rank itself find it.
    pub(crate) fn address(&self) -> u64 {
        self.0.address()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// See [`Words::fill`].
    pub(crate) fn fill(&self, word: u32) -> Result<(), Error> {
        self.0.fill(word)
    }

    /// See [`Words::read`].
    pub(crate) fn read(&self, word: usize) -> Result<u32, Error> {
        self.0.read(word)
    }

    /// See [`Words::cells`].
    pub(crate) fn cells(&self) -> Option<&[AtomicU32]> {
        self.0.cells()
    }
}

/// A rank's memory as the kernels of one rank, itself or a peer, reach it. Theirs to write to, not to fill.
#[derive(Debug)]
pub(crate) struct Mapping {
    address: u64,
    bytes: u64,
    _mapped: Arc<dyn Words>,
}

impl Mapping {
    /// Where it is for kernels that share `own`'s address space.
    pub(crate) fn in_place(own: &Own) -> Mapping {
        Mapping { address: own.address(), bytes: own.bytes(), _mapped: Arc::clone(&own.0) }
    }

    /// Where the kernels find it.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Words that kernels write, and that the host reads meanwhile by a mere load.
#[derive(Debug)]
pub(crate) struct Mirror {
    own: Own,
    words: NonNull<[AtomicU32]>,
}

// SAFETY: `words` are atomics of `own`, which may go to another thread.
unsafe impl Send for Mirror {}
// SAFETY: as above, and `own` may be shared.
unsafe impl Sync for Mirror {}

impl Mirror {
    /// Of `words`, which are always those that `cells` answers.
    pub(crate) fn new<W: Words + 'static>(words: W, cells: fn(&W) -> &[AtomicU32]) -> Mirror {
        let owner = Arc::new(words);
        let words = NonNull::from(cells(&owner));
        Mirror { own: Own(owner), words }
    }

    pub(crate) fn own(&self) -> &Own {
        &self.own
    }

    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU32] {
        // SAFETY: they are those of `own`, which is alive, behind an `Arc`, and answers the same ones always.
        unsafe { self.words.as_ref() }
    }
}
