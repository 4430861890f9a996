//! Memory that seamline itself allocates. Not cudarc's: what its pools allocate cannot be shared between
//! processes.

use super::DriverContext;
use super::side::SideStream;
use crate::error::Error;
use crate::group::memory::Words;
use cudarc::driver::{CudaContext, result, sys};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// 32-bit words of device memory.
#[derive(Debug)]
pub(crate) struct DeviceWords {
    side: Arc<SideStream>,
    address: sys::CUdeviceptr,
    count: usize,
}

impl DeviceWords {
    pub(super) fn new(side: &Arc<SideStream>, count: u64, word: u32) -> Result<DeviceWords, Error> {
        let doing = || format!("allocating {} bytes of exchange memory", count * 4);
        side.context().bind_to_thread().doing(doing)?;
        // SAFETY: the memory is filled below, before anyone reads it.
        let address = unsafe { result::malloc_sync(count as usize * 4) }.doing(doing)?;
        let words = DeviceWords { side: Arc::clone(side), address, count: count as usize };
        words.fill(word)?;
        Ok(words)
    }
}

impl Words for DeviceWords {
    fn address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> u64 {
        self.count as u64 * 4
    }

    /// Returns when it is done: a kernel on any stream may follow. It waits for no kernel: that of a rank which has
    /// been prepared before may be polling for this one.
    fn fill(&self, word: u32) -> Result<(), Error> {
        // SAFETY: `address` is an allocation of `count` words, alive as long as `self`.
        unsafe {
            self.side.run("filling exchange memory", |stream| {
                sys::cuMemsetD32Async(self.address, word, self.count, stream).result()
            })
        }
    }

    fn read(&self, word: usize) -> Result<u32, Error> {
        assert!(word < self.count, "word {word} of {}", self.count);
        let mut value = [0u32];
        let address = self.address + 4 * word as u64;
        // SAFETY: the allocation has the word; `value` lives until the copy has been waited for.
        unsafe {
            self.side
                .run("reading the status", |stream| result::memcpy_dtoh_async(&mut value, address, stream))?;
        }
        Ok(value[0])
    }

    fn cells(&self) -> Option<&[AtomicU32]> {
        None
    }
}

impl Drop for DeviceWords {
    fn drop(&mut self) {
        let context = self.side.context();
        context.record_err(context.bind_to_thread());
        // SAFETY: `address` came from `malloc_sync`. Kernels that use it have ended: what belongs to a group is
        // freed after it, and the group waits for them when it ends.
        context.record_err(unsafe { result::free_sync(self.address) });
    }
}

/// 32-bit words of page-locked host memory, mapped into the device's address space.
#[derive(Debug)]
pub(crate) struct PinnedWords {
    context: Arc<CudaContext>,
    host: *mut c_void,
    device: sys::CUdeviceptr,
    count: usize,
}

// SAFETY: the host reads the words as atomics only; the pointer is freed once.
unsafe impl Send for PinnedWords {}
// SAFETY: as above.
unsafe impl Sync for PinnedWords {}

impl PinnedWords {
    pub(crate) fn new(context: &Arc<CudaContext>, count: u64) -> Result<PinnedWords, Error> {
        let doing = || "allocating page-locked memory for the status".into();
        context.bind_to_thread().doing(doing)?;
        let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: the memory is filled below, before anyone reads it.
        let host = unsafe { result::malloc_host(count as usize * 4, flags) }.doing(doing)?;
        let mut words = PinnedWords { context: Arc::clone(context), host, device: 0, count: count as usize };
        // SAFETY: `host` is a mapped allocation of this context.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&mut words.device, host, 0) }.result().doing(doing)?;
        // SAFETY: an allocation of so many words, of which every bit pattern is a value.
        unsafe { host.cast::<u32>().write_bytes(0, words.count) };
        Ok(words)
    }

    pub(crate) fn words(&self) -> &[AtomicU32] {
        // SAFETY: page-aligned, initialised, alive as long as `self`; the device writes whole words.
        unsafe { std::slice::from_raw_parts(self.host.cast(), self.count) }
    }
}

impl Words for PinnedWords {
    fn address(&self) -> u64 {
        self.device
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

impl Drop for PinnedWords {
    fn drop(&mut self) {
        self.context.record_err(self.context.bind_to_thread());
        // SAFETY: `host` came from `malloc_host`. Kernels that use it have ended, as above.
        self.context.record_err(unsafe { result::free_host(self.host) });
    }
}
