//! Ranks on one device.

use super::device::Device;
use super::kernel::CudaKernel;
use super::launch::same_context;
use super::memory::{DeviceWords, PinnedWords};
use super::module::Loaded;
use super::nvrtc::Compiled;
use super::side::SideStream;
use super::streams::{Handle, Streams};
use super::{Doing, driver};
use crate::error::Error;
use crate::group::memory::Memory;
use crate::plan::Plan;
use crate::queue::{Kind, Queue};
use crate::sync::lock;
use cudarc::driver::{CudaContext, result, sys};
use seamline_codegen::schedule::DeviceModel;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Ranks that share one device.
pub(crate) struct CudaGroup {
    shared: Arc<Shared>,
    streams: Streams,
}

/// What a group shares with its forks.
struct Shared {
    context: Arc<CudaContext>,
    device: Device,
    /// What was loaded, by the code that it was loaded from. Kept until the last group ends: its kernels may run, or
    /// be in captured graphs.
    loaded: Mutex<Vec<Arc<Loaded>>>,
    side: Arc<SideStream>,
}

impl CudaGroup {
    pub(crate) fn new(context: &Arc<CudaContext>, ranks: u32) -> Result<CudaGroup, Error> {
        driver::present()?;
        let shared = Arc::new(Shared {
            context: Arc::clone(context),
            device: Device::of(context)?,
            loaded: Mutex::new(Vec::new()),
            side: Arc::new(SideStream::new(context)?),
        });
        Ok(CudaGroup { shared, streams: Streams::new(ranks) })
    }

    /// Another group on the same device.
    pub(crate) fn fork(&self) -> CudaGroup {
        CudaGroup { shared: Arc::clone(&self.shared), streams: Streams::new(self.streams.ranks()) }
    }

    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        &self.shared.context
    }

    pub(crate) fn device(&self) -> &Device {
        &self.shared.device
    }

    pub(crate) fn model(&self) -> DeviceModel {
        self.shared.device.model
    }

    pub(crate) fn peak_bytes_per_second(&self) -> Option<f64> {
        self.shared.device.peak_bytes_per_second
    }

    pub(crate) fn allocate(&self, words: u64, fill: u32) -> Result<Memory, Error> {
        Ok(Memory::Device(self.words(words, fill)?))
    }

    pub(super) fn words(&self, words: u64, fill: u32) -> Result<DeviceWords, Error> {
        DeviceWords::new(&self.shared.side, words, fill)
    }

    pub(crate) fn allocate_pinned(&self, words: u64) -> Result<Memory, Error> {
        Ok(Memory::Pinned(PinnedWords::new(&self.shared.context, words)?))
    }

    pub(crate) fn kernel(&self, plan: &Plan) -> Result<CudaKernel, Error> {
        CudaKernel::new(self, plan)
    }

    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        self.shared.context.synchronize().doing(|| "waiting for the device".into())
    }

    /// What `load` makes of `compiled`, or made for another rank.
    pub(super) fn loaded(
        &self,
        compiled: &Arc<Compiled>,
        load: impl FnOnce() -> Result<Loaded, Error>,
    ) -> Result<Arc<Loaded>, Error> {
        let mut all = lock(&self.shared.loaded);
        if let Some(found) = all.iter().find(|l| Arc::ptr_eq(&l.compiled, compiled)) {
            return Ok(Arc::clone(found));
        }
        let loaded = Arc::new(load()?);
        all.push(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// The streams that the ranks' launches are on.
    pub(super) fn streams(&self) -> &Streams {
        &self.streams
    }

    pub(crate) fn move_to(&self, rank: u32, queue: Queue<'_>) -> Result<(), Error> {
        let handle = Handle::of(queue)?;
        if let Kind::Stream(new) = queue.0 {
            same_context(&self.shared.context, new.context(), || "the stream".into())?;
        }
        let order = |from, to| self.after(from as sys::CUstream, to as sys::CUstream);
        self.streams.move_to(rank, handle, order)
    }

    /// Lets what `second` gets wait for what `first` has.
    fn after(&self, first: sys::CUstream, second: sys::CUstream) -> Result<(), Error> {
        let doing = || "moving the rank to another stream".into();
        self.shared.context.bind_to_thread().doing(doing)?;
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).doing(doing)?;
        // SAFETY: both are streams of this context: the first is kept alive, or vouched for by the maker of a
        // raw queue; the second is the caller's. The event is destroyed after its last use, which the driver
        // allows before it has happened.
        let ordered = unsafe {
            let ordered = result::event::record(event, first).and_then(|()| {
                result::stream::wait_event(second, event, sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT)
            });
            ordered.and(result::event::destroy(event))
        };
        ordered.doing(doing)
    }

    /// A word of device memory as it is now, whatever is queued.
    pub(crate) fn peek(&self, memory: &Memory, word: usize) -> Result<u32, Error> {
        let mut value = [0u32];
        let address = memory.address() + 4 * word as u64;
        // SAFETY: `memory` is this group's, and has the word; `value` lives until the copy has been waited for.
        unsafe {
            self.shared
                .side
                .run("reading the status", |stream| result::memcpy_dtoh_async(&mut value, address, stream))?;
        }
        Ok(value[0])
    }
}

impl Drop for CudaGroup {
    /// Waits for all that is queued: a launch borrows its arguments only while it is being queued, so that nothing
    /// else keeps the code that it runs, and the memory that it exchanges through, until it has ended.
    fn drop(&mut self) {
        self.shared.context.record_err(self.shared.context.synchronize());
    }
}

impl fmt::Debug for CudaGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { context, device, .. } = &*self.shared;
        write!(f, "device {} ({}, {})", context.ordinal(), device.name, device.arch)
    }
}
