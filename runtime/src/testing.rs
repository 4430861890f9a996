//! What tests of engines want to know.

use std::sync::atomic::{AtomicU64, Ordering};

static COMPILED: AtomicU64 = AtomicU64::new(0);

/// How many CUDA sources this process has compiled. A kernel that is prepared again, on another rank or for
/// another layer, compiles nothing.
pub fn compile_count() -> u64 {
    COMPILED.load(Ordering::Relaxed)
}

#[cfg(feature = "cuda")]
pub(crate) fn count_compile() {
    COMPILED.fetch_add(1, Ordering::Relaxed);
}
