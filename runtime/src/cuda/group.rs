//! Ranks on one device.

use super::code::CudaCode;
use super::device::Device;
use super::launch::{NAME, same_context};
use super::memory::{DeviceWords, PinnedWords};
use super::module::Loaded;
use super::nvrtc::Compiled;
use super::side::SideStream;
use super::streams::{Handle, Streams};
use super::{DriverContext, driver};
use crate::backend::{Backend, Build, Code, Info};
use crate::error::Error;
use crate::group::agreement::Agreement;
use crate::group::memory::{Mirror, Own};
use crate::group::transport::{OneSpace, Transport};
use crate::queue::{Kind, Queue};
use crate::sync::lock;
use cudarc::driver::{CudaContext, result, sys};
use std::fmt;
use std::sync::{Arc, Mutex};

/// Ranks that share one device.
pub(crate) struct CudaGroup {
    shared: Arc<Shared>,
    streams: Arc<Streams>,
    /// What was compiled for the group, and for what.
    compiled: Mutex<Vec<(Agreement, Arc<CudaCode>)>>,
}

/// What a group shares with its forks.
pub(super) struct Shared {
    pub(super) context: Arc<CudaContext>,
    pub(super) device: Device,
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
        Ok(CudaGroup::with(shared, ranks))
    }

    fn with(shared: Arc<Shared>, ranks: u32) -> CudaGroup {
        CudaGroup { shared, streams: Arc::new(Streams::new(ranks)), compiled: Mutex::default() }
    }
}

impl Backend for CudaGroup {
    fn info(&self) -> Info {
        let device = &self.shared.device;
        Info {
            name: NAME,
            device: device.model,
            ranks_per_device: self.streams.ranks(),
            exchanges_through_memory: true,
            peak_bytes_per_second: device.peak_bytes_per_second,
        }
    }

    fn fork(&self) -> Box<dyn Backend> {
        Box::new(CudaGroup::with(Arc::clone(&self.shared), self.streams.ranks()))
    }

    fn allocate(&self, _rank: u32, words: u64, fill: u32) -> Result<Own, Error> {
        Ok(Own::new(self.shared.words(words, fill)?))
    }

    fn mirror(&self, _rank: u32, words: u64) -> Result<Mirror, Error> {
        Ok(Mirror::new(PinnedWords::new(&self.shared.context, words)?, PinnedWords::words))
    }

    fn transport(&self, _owner: u32, _user: u32) -> &dyn Transport {
        &OneSpace
    }

    fn compile(&self, build: &Build<'_>) -> Result<Arc<dyn Code>, Error> {
        let known = |all: &[(Agreement, Arc<CudaCode>)]| {
            all.iter().find(|(of, _)| of == build.agreement).map(|(_, code)| Arc::clone(code))
        };
        if let Some(code) = known(&lock(&self.compiled)) {
            return Ok(code);
        }
        // Not under the lock: other patterns compile meanwhile, and of the same one every source compiles once.
        let code = Arc::new(CudaCode::new(&self.shared, &self.streams, build)?);
        let mut all = lock(&self.compiled);
        if let Some(code) = known(&all) {
            return Ok(code);
        }
        all.push((build.agreement.clone(), Arc::clone(&code)));
        Ok(code)
    }

    fn while_idle(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<(), Error> {
        self.shared.context.synchronize().doing(|| "waiting for the device".into())?;
        work()
    }

    fn move_to(&self, rank: u32, queue: Queue<'_>) -> Result<(), Error> {
        let handle = Handle::of(queue)?;
        if let Kind::Stream(new) = queue.0 {
            same_context(&self.shared.context, new.context(), || "the stream".into())?;
        }
        let order = |from, to| self.shared.after(from as sys::CUstream, to as sys::CUstream);
        self.streams.move_to(rank, handle, order)
    }

    fn context(&self, _rank: u32) -> Option<&Arc<CudaContext>> {
        Some(&self.shared.context)
    }
}

impl Shared {
    pub(super) fn words(&self, words: u64, fill: u32) -> Result<DeviceWords, Error> {
        DeviceWords::new(&self.side, words, fill)
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
