//! A rank as its user holds it.

use crate::error::Error;
use crate::group::control::Control;
use crate::group::state::State;
use crate::group::status::Status;
use seamline_codegen::schedule::DeviceModel;
use std::fmt;
use std::sync::Arc;

/// One member of a group: what kernels are prepared on.
#[derive(Clone)]
pub struct Rank {
    pub(crate) group: Arc<State>,
    pub(crate) index: u32,
}

impl Rank {
    /// Its index in the group, from 0.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// N, the size of the group.
    pub fn group_size(&self) -> u32 {
        self.group.size()
    }

    /// What runs its kernels: `cuda`, `sim` or `reference`.
    pub fn executor(&self) -> &'static str {
        self.group.info.name
    }

    /// The device for which its launches are shaped.
    pub fn device(&self) -> DeviceModel {
        self.group.info.device
    }

    /// The context that its memory and streams belong to; `None` on the host.
    #[cfg(feature = "cuda")]
    pub fn context(&self) -> Option<&Arc<cudarc::driver::CudaContext>> {
        self.group.backend.context(self.index)
    }

    /// What its kernels have noticed. Does not wait for them, nor for anything queued on their streams.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn status(&self) -> Result<Status, Error> {
        self.control().read()
    }

    /// Continues on `stream`: what this rank has queued on the stream it was on comes before what it will
    /// queue there.
    ///
    /// # Errors
    /// A stream of another context, or a driver that fails.
    #[cfg(feature = "cuda")]
    pub fn move_to<'q>(&self, stream: impl Into<crate::Queue<'q>>) -> Result<(), Error> {
        self.group.backend.move_to(self.index, stream.into())
    }

    pub(crate) fn control(&self) -> &Control {
        &self.group.controls[self.index as usize]
    }
}

impl fmt::Debug for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rank({} of {} on {})", self.index, self.group_size(), self.executor())
    }
}
