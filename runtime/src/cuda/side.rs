//! A stream beside all others.

use super::DriverContext;
use crate::error::Error;
use cudarc::driver::{CudaContext, result, sys};
use std::sync::Arc;

/// A stream that waits for no other, and that no other waits for: for reaching device memory while kernels run,
/// which may be polling. Not one of cudarc's: making one of those turns its event tracking on.
#[derive(Debug)]
pub(crate) struct SideStream {
    context: Arc<CudaContext>,
    stream: sys::CUstream,
}

// SAFETY: a stream may be used by any thread that has its context current.
unsafe impl Send for SideStream {}
// SAFETY: as above; the driver serialises what threads queue.
unsafe impl Sync for SideStream {}

impl SideStream {
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<SideStream, Error> {
        let doing = || "creating a stream".into();
        context.bind_to_thread().doing(doing)?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking).doing(doing)?;
        Ok(SideStream { context: Arc::clone(context), stream })
    }

    pub(super) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// Queues with `queue`, and waits until that has been done.
    ///
    /// # Safety
    /// What `queue` does is allowed until this returns.
    pub(super) unsafe fn run(
        &self,
        what: &str,
        queue: impl FnOnce(sys::CUstream) -> Result<(), cudarc::driver::DriverError>,
    ) -> Result<(), Error> {
        let doing = || what.to_owned();
        self.context.bind_to_thread().doing(doing)?;
        queue(self.stream).doing(doing)?;
        // SAFETY: the stream lives as long as `self`.
        unsafe { result::stream::synchronize(self.stream) }.doing(doing)
    }
}

impl Drop for SideStream {
    fn drop(&mut self) {
        self.context.record_err(self.context.bind_to_thread());
        // SAFETY: made by `new`, destroyed once; `run` leaves nothing on it.
        self.context.record_err(unsafe { result::stream::destroy(self.stream) });
    }
}
