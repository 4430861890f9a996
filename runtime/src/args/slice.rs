//! cudarc's slices as arguments, through the guards that keep cross-stream order.

use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceSlice,
    SyncOnDrop,
};
use std::sync::Arc;

/// A slice that can be read.
pub(crate) trait Read: Send + Sync {
    /// Lets `stream` wait for what writes it; the guard lives until the reading kernel is queued.
    fn pointer<'b>(&'b self, stream: &'b CudaStream) -> (u64, SyncOnDrop<'b>);
    fn context(&self) -> &Arc<CudaContext>;
}

/// A slice that can be written.
pub(crate) trait Write: Send + Sync {
    /// Lets `stream` wait for what uses it; the guard lives until the writing kernel is queued.
    fn pointer<'b>(&'b mut self, stream: &'b CudaStream) -> (u64, SyncOnDrop<'b>);
    fn context(&self) -> &Arc<CudaContext>;
}

macro_rules! readable {
    ($($t:ty),*) => {$(
        impl<T: Send + Sync> Read for $t {
            #[inline]
            fn pointer<'b>(&'b self, stream: &'b CudaStream) -> (u64, SyncOnDrop<'b>) {
                self.device_ptr(stream)
            }
            fn context(&self) -> &Arc<CudaContext> {
                self.stream().context()
            }
        }
    )*};
}
readable!(CudaSlice<T>, CudaView<'_, T>);

macro_rules! writable {
    ($($t:ty),*) => {$(
        impl<T: Send + Sync> Write for $t {
            #[inline]
            fn pointer<'b>(&'b mut self, stream: &'b CudaStream) -> (u64, SyncOnDrop<'b>) {
                self.device_ptr_mut(stream)
            }
            fn context(&self) -> &Arc<CudaContext> {
                self.stream().context()
            }
        }
    )*};
}
writable!(CudaSlice<T>, CudaViewMut<'_, T>);
