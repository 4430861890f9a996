//! Where a launch is queued.

#[cfg(feature = "cuda")]
use cudarc::driver::CudaStream;
#[cfg(feature = "cuda")]
use std::{ffi::c_void, sync::Arc};

/// Where a launch is queued: a CUDA stream, or the calling thread for a host executor.
#[derive(Clone, Copy, Debug)]
pub struct Queue<'a>(pub(crate) Kind<'a>);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'a> {
    /// With the lifetime that the other kinds have.
    Host(std::marker::PhantomData<&'a ()>),
    #[cfg(feature = "cuda")]
    Stream(&'a Arc<CudaStream>),
    #[cfg(feature = "cuda")]
    Raw(*mut c_void),
}

impl Queue<'_> {
    /// The calling thread: a launch on a host executor has ended when it returns.
    pub const fn host() -> Queue<'static> {
        Queue(Kind::Host(std::marker::PhantomData))
    }

    /// A stream of another library: a `CUstream` or `cudaStream_t`.
    ///
    /// The null stream and `CU_STREAM_LEGACY` are one: the legacy default stream, which every blocking stream of the
    /// context waits for, and which waits for them. Ranks of a loopback group of which one is there and another on
    /// a blocking stream wait for each other in vain: give them streams made with `CU_STREAM_NON_BLOCKING`, as
    /// cudarc's are. It cannot be captured. `CU_STREAM_PER_THREAD` is another stream on each thread, and refused
    /// for kernels that exchange.
    ///
    /// # Safety
    /// `stream` is a stream of the rank's context, and lives as long as the rank's next launch, or until
    /// [`Rank::move_to`](crate::Rank::move_to) has moved the rank elsewhere, which waits on it.
    #[cfg(feature = "cuda")]
    pub const unsafe fn raw(stream: *mut c_void) -> Queue<'static> {
        Queue(Kind::Raw(stream))
    }
}

#[cfg(feature = "cuda")]
impl<'a> From<&'a Arc<CudaStream>> for Queue<'a> {
    fn from(stream: &'a Arc<CudaStream>) -> Queue<'a> {
        Queue(Kind::Stream(stream))
    }
}

impl<'a> From<&Queue<'a>> for Queue<'a> {
    fn from(queue: &Queue<'a>) -> Queue<'a> {
        *queue
    }
}
