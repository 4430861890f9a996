//! A prepared pattern's kernels on one device.

use super::launch::{capturing, group};
use super::module::Loaded;
use super::{CudaGroup, nvrtc, residency};
use crate::error::{Error, ErrorKind};
use crate::kernel::Inner;
use crate::plan::Plan;
use cudarc::driver::CudaFunction;
use cudarc::driver::sys::CUstream;
use std::sync::{Arc, OnceLock};

/// Per variant: what is loaded. Empty until the first launch of a lazy kernel.
#[derive(Debug)]
pub(crate) struct CudaKernel {
    variants: Vec<OnceLock<Arc<Loaded>>>,
}

impl CudaKernel {
    pub(super) fn new(group: &CudaGroup, plan: &Plan) -> Result<CudaKernel, Error> {
        if plan.lazy {
            return Ok(CudaKernel { variants: plan.variants.iter().map(|_| OnceLock::new()).collect() });
        }
        let sources: Vec<String> = plan.variants.iter().map(|v| v.module().cuda()).collect();
        // All at once; then each is found compiled.
        nvrtc::compile_all(&sources, &group.device().arch)?;
        let load = |(i, source): (usize, &String)| Ok(OnceLock::from(load(group, plan, i, source)?));
        Ok(CudaKernel { variants: sources.iter().enumerate().map(load).collect::<Result<_, Error>>()? })
    }

    /// The kernels of a variant, by entry.
    #[inline]
    pub(super) fn functions(
        &self,
        kernel: &Inner,
        variant: usize,
        stream: CUstream,
    ) -> Result<&[CudaFunction], Error> {
        match self.variants[variant].get() {
            Some(loaded) => Ok(&loaded.functions),
            None => self.first_launch(kernel, variant, stream),
        }
    }

    #[cold]
    fn first_launch(
        &self,
        kernel: &Inner,
        variant: usize,
        stream: CUstream,
    ) -> Result<&[CudaFunction], Error> {
        if capturing(stream) {
            return Err(ErrorKind::LazyCapture.into());
        }
        let group = group(kernel);
        let source = kernel.plan.variants[variant].module().cuda();
        let loaded = load(group, &kernel.plan, variant, &source)?;
        Ok(&self.variants[variant].get_or_init(|| loaded).functions)
    }

    /// What the compiler said of each variant that is compiled.
    pub(crate) fn compiled(&self) -> impl Iterator<Item = &Arc<nvrtc::Compiled>> {
        self.variants.iter().filter_map(|v| v.get()).map(|loaded| &loaded.compiled)
    }
}

/// Compiles, loads, and makes sure that it cannot hang; or finds that done for another rank.
fn load(group: &CudaGroup, plan: &Plan, variant: usize, source: &str) -> Result<Arc<Loaded>, Error> {
    let variant = &plan.variants[variant];
    let compiled = nvrtc::compile(source, &group.device().arch)?;
    let loaded = group.loaded(&compiled, || Loaded::new(group.context(), variant.module(), &compiled))?;
    residency::check(plan, variant, &loaded)?;
    Ok(loaded)
}
