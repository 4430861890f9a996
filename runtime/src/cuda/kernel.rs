//! A prepared pattern's kernels on one device.

use super::launch::{capturing, group};
use super::module::Loaded;
use super::{CudaGroup, nvrtc, residency};
use crate::error::{Error, ErrorKind};
use crate::kernel::Inner;
use crate::plan::Plan;
use crate::plan::variant::Variant;
use cudarc::driver::CudaFunction;
use cudarc::driver::sys::CUstream;
use std::sync::{Arc, OnceLock};

/// Per variant: what is loaded. Empty until the first launch of a lazy kernel.
#[derive(Debug)]
pub(crate) struct CudaKernel {
    variants: OnceLock<Vec<Arc<Loaded>>>,
}

impl CudaKernel {
    pub(super) fn new(group: &CudaGroup, plan: &Plan) -> Result<CudaKernel, Error> {
        Ok(CudaKernel {
            variants: match plan.lazy {
                true => OnceLock::new(),
                false => OnceLock::from(load_all(group, plan)?),
            },
        })
    }

    /// The kernels of a variant, by entry.
    #[inline]
    pub(super) fn functions(
        &self,
        kernel: &Inner,
        variant: usize,
        stream: CUstream,
    ) -> Result<&[CudaFunction], Error> {
        match self.variants.get() {
            Some(variants) => Ok(&variants[variant].functions),
            None => Ok(&self.first_launch(kernel, stream)?[variant].functions),
        }
    }

    /// Loads every variant, not this launch's alone: a later launch of another one may find kernels that poll, and
    /// loading may wait for them.
    #[cold]
    fn first_launch(&self, kernel: &Inner, stream: CUstream) -> Result<&[Arc<Loaded>], Error> {
        if capturing(stream) {
            return Err(ErrorKind::LazyCapture.into());
        }
        let variants = load_all(group(kernel), &kernel.plan)?;
        Ok(self.variants.get_or_init(|| variants))
    }

    /// What the compiler said of each variant that is compiled.
    pub(crate) fn compiled(&self) -> impl Iterator<Item = &Arc<nvrtc::Compiled>> {
        self.variants.get().into_iter().flatten().map(|loaded| &loaded.compiled)
    }
}

/// Compiles and loads every variant, and makes sure that none can hang; or finds that done for another rank.
fn load_all(group: &CudaGroup, plan: &Plan) -> Result<Vec<Arc<Loaded>>, Error> {
    let sources: Vec<String> = plan.variants.iter().map(|v| v.module().cuda()).collect();
    let compiled = nvrtc::compile_all(&sources, &group.device().arch)?;
    let load = |(variant, compiled): (&Variant, &Arc<nvrtc::Compiled>)| {
        let loaded = group.loaded(compiled, || Loaded::new(group.context(), variant.module(), compiled))?;
        residency::check(plan, variant, &loaded)?;
        Ok(loaded)
    };
    plan.variants.iter().zip(&compiled).map(load).collect()
}
