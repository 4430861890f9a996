//! Ranks on one device.

use super::device::Device;
use super::kernel::CudaKernel;
use super::launch::same_context;
use super::memory::{DeviceWords, PinnedWords};
use super::module::Loaded;
use super::nvrtc::Compiled;
use super::{Doing, driver};
use crate::error::{Error, ErrorKind};
use crate::group::lock;
use crate::memory::Memory;
use crate::plan::Plan;
use crate::queue::{Kind, Queue};
use cudarc::driver::{CudaContext, CudaStream, result, sys};
use seamline_codegen::schedule::DeviceModel;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Ranks that share one device.
pub(crate) struct CudaGroup {
    context: Arc<CudaContext>,
    device: Device,
    /// By rank.
    streams: Vec<RankStream>,
    /// What was loaded, by the code that it was loaded from.
    loaded: Mutex<Vec<Arc<Loaded>>>,
    /// For looking at device memory beside all that is queued; made when first needed.
    side: Mutex<Option<SideStream>>,
}

/// The stream that a rank's launches are on.
#[derive(Debug)]
struct RankStream {
    /// Its handle, or [`NONE`].
    current: AtomicUsize,
    /// Keeps a stream of cudarc's alive, so that its handle names no other stream.
    owner: Mutex<Option<Arc<CudaStream>>>,
}

/// No stream's handle.
const NONE: usize = usize::MAX;

impl CudaGroup {
    pub(crate) fn new(context: &Arc<CudaContext>, ranks: u32) -> Result<CudaGroup, Error> {
        driver::present()?;
        let stream = |_| RankStream { current: AtomicUsize::new(NONE), owner: Mutex::new(None) };
        Ok(CudaGroup {
            context: Arc::clone(context),
            device: Device::of(context)?,
            streams: (0..ranks).map(stream).collect(),
            loaded: Mutex::new(Vec::new()),
            side: Mutex::new(None),
        })
    }

    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn model(&self) -> DeviceModel {
        self.device.model
    }

    pub(crate) fn peak_bytes_per_second(&self) -> Option<f64> {
        self.device.peak_bytes_per_second
    }

    pub(crate) fn allocate(&self, words: u64, fill: u32) -> Result<Memory, Error> {
        Ok(Memory::Device(DeviceWords::new(&self.context, words, fill)?))
    }

    pub(crate) fn allocate_pinned(&self, words: u64) -> Result<Memory, Error> {
        Ok(Memory::Pinned(PinnedWords::new(&self.context, words)?))
    }

    pub(crate) fn kernel(&self, plan: &Plan) -> Result<CudaKernel, Error> {
        CudaKernel::new(self, plan)
    }

    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        self.context.synchronize().doing(|| "waiting for the device".into())
    }

    /// What `load` makes of `compiled`, or made for another rank.
    pub(super) fn loaded(
        &self,
        compiled: &Arc<Compiled>,
        load: impl FnOnce() -> Result<Loaded, Error>,
    ) -> Result<Arc<Loaded>, Error> {
        let mut all = lock(&self.loaded);
        if let Some(found) = all.iter().find(|l| Arc::ptr_eq(&l.compiled, compiled)) {
            return Ok(Arc::clone(found));
        }
        let loaded = Arc::new(load()?);
        all.push(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Refuses a launch on another stream than the one before it.
    #[inline]
    pub(super) fn order(&self, rank: u32, queue: &Queue<'_>) -> Result<(), Error> {
        let stream = &self.streams[rank as usize];
        let (handle, owner) = split(queue);
        match stream.current.load(Ordering::Relaxed) {
            current if current == handle => Ok(()),
            NONE => stream.adopt(handle, owner),
            _ => Err(ErrorKind::SecondStream.into()),
        }
    }

    pub(crate) fn move_to(&self, rank: u32, queue: Queue<'_>) -> Result<(), Error> {
        let stream = &self.streams[rank as usize];
        let (handle, owner) = split(&queue);
        match queue.0 {
            Kind::Host(_) => {
                return Err(ErrorKind::Queue {
                    executor: "cuda",
                    expected: "a CUDA stream",
                    got: "`Queue::host()`",
                }
                .into());
            }
            Kind::Stream(new) => same_context(&self.context, new.context(), || "the stream".into())?,
            Kind::Raw(_) => {}
        }
        let mut kept = lock(&stream.owner);
        let current = stream.current.load(Ordering::Relaxed);
        if current != NONE && current != handle {
            self.after(current as sys::CUstream, handle as sys::CUstream)?;
        }
        *kept = owner.cloned();
        stream.current.store(handle, Ordering::Relaxed);
        Ok(())
    }

    /// Lets what `second` gets wait for what `first` has.
    fn after(&self, first: sys::CUstream, second: sys::CUstream) -> Result<(), Error> {
        let doing = || "moving the rank to another stream".into();
        self.context.bind_to_thread().doing(doing)?;
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
        let doing = || "reading the status".into();
        self.context.bind_to_thread().doing(doing)?;
        let mut side = lock(&self.side);
        let stream = match &*side {
            Some(side) => side.stream,
            None => {
                let stream = result::stream::create(result::stream::StreamKind::NonBlocking).doing(doing)?;
                side.insert(SideStream { context: Arc::clone(&self.context), stream }).stream
            }
        };
        let mut value = [0u32];
        // SAFETY: `memory` is this group's, and has the word; `value` lives until the copy has been waited
        // for.
        unsafe {
            result::memcpy_dtoh_async(&mut value, memory.address() + 4 * word as u64, stream).doing(doing)?;
            result::stream::synchronize(stream).doing(doing)?;
        }
        Ok(value[0])
    }
}

impl RankStream {
    #[cold]
    fn adopt(&self, handle: usize, owner: Option<&Arc<CudaStream>>) -> Result<(), Error> {
        let mut kept = lock(&self.owner);
        match self.current.compare_exchange(NONE, handle, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                *kept = owner.cloned();
                Ok(())
            }
            Err(current) if current == handle => Ok(()),
            Err(_) => Err(ErrorKind::SecondStream.into()),
        }
    }
}

/// A stream's handle, and cudarc's stream if it is one.
#[inline]
fn split<'q>(queue: &Queue<'q>) -> (usize, Option<&'q Arc<CudaStream>>) {
    match queue.0 {
        Kind::Host(_) => (NONE, None),
        Kind::Stream(stream) => (stream.cu_stream() as usize, Some(stream)),
        Kind::Raw(stream) => (stream as usize, None),
    }
}

/// Not one of cudarc's: making one of those turns its event tracking on.
#[derive(Debug)]
struct SideStream {
    context: Arc<CudaContext>,
    stream: sys::CUstream,
}

// SAFETY: a stream may be used by any thread that has its context current.
unsafe impl Send for SideStream {}

impl Drop for SideStream {
    fn drop(&mut self) {
        self.context.record_err(self.context.bind_to_thread());
        // SAFETY: made by `peek`, destroyed once.
        self.context.record_err(unsafe { result::stream::destroy(self.stream) });
    }
}

impl fmt::Debug for CudaGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {} ({}, {})", self.context.ordinal(), self.device.name, self.device.arch)
    }
}
