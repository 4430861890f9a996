//! A prepared pattern's kernels on one device.

use super::driver_launch::DriverLaunch;
use super::group::Shared;
use super::launch::{Ready, capturing};
use super::module::Loaded;
use super::streams::{Handle, Streams};
use super::{nvrtc, one_grid, residency};
use crate::backend::{Build, Code, Launch, pieces};
use crate::error::{Error, ErrorKind};
use crate::plan::placement::Placement;
use crate::plan::variant::Variant;
use crate::queue::Queue;
use cudarc::driver::CudaFunction;
use cudarc::driver::sys::CUstream;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A pattern's kernels, for the ranks of one group.
pub(crate) struct CudaCode {
    pub(super) shared: Arc<Shared>,
    pub(super) streams: Arc<Streams>,
    pub(super) placement: Placement,
    variants: Arc<[Variant]>,
    /// Per variant. Empty until the first launch of a lazy kernel.
    loaded: OnceLock<Vec<Arc<Loaded>>>,
}

impl CudaCode {
    pub(super) fn new(
        shared: &Arc<Shared>,
        streams: &Arc<Streams>,
        build: &Build<'_>,
    ) -> Result<CudaCode, Error> {
        let code = CudaCode {
            shared: Arc::clone(shared),
            streams: Arc::clone(streams),
            placement: build.placement.clone(),
            variants: Arc::clone(build.variants),
            loaded: OnceLock::new(),
        };
        if !build.lazy {
            let loaded = code.load_all()?;
            code.loaded.get_or_init(|| loaded);
        }
        Ok(code)
    }

    /// The kernels of a variant, by entry.
    #[inline]
    pub(super) fn functions(&self, variant: usize, stream: CUstream) -> Result<&[CudaFunction], Error> {
        match self.loaded.get() {
            Some(loaded) => Ok(&loaded[variant].functions),
            None => Ok(&self.first_launch(stream)?[variant].functions),
        }
    }

    /// Loads every variant, not this launch's alone: a later launch of another one may find kernels that poll, and
    /// loading may wait for them.
    #[cold]
    fn first_launch(&self, stream: CUstream) -> Result<&[Arc<Loaded>], Error> {
        if capturing(stream) {
            return Err(ErrorKind::LazyCapture.into());
        }
        let loaded = self.load_all()?;
        Ok(self.loaded.get_or_init(|| loaded))
    }

    /// Compiles and loads every variant, and makes sure that none can hang; or finds that done for another group.
    fn load_all(&self) -> Result<Vec<Arc<Loaded>>, Error> {
        let Shared { context, device, .. } = &*self.shared;
        let sources: Vec<String> = self.variants.iter().map(|v| v.module().cuda()).collect();
        let compiled = nvrtc::compile_all(&sources, &device.arch)?;
        let load = |(variant, compiled): (&Variant, &Arc<nvrtc::Compiled>)| {
            let load = || Loaded::new(context, variant.module(), compiled);
            let loaded = self.shared.loaded(compiled, load)?;
            residency::check(&self.placement, variant, &loaded)?;
            Ok(loaded)
        };
        self.variants.iter().zip(&compiled).map(load).collect()
    }
}

impl Code for CudaCode {
    fn launch(&self, queue: Queue<'_>, launch: Launch<'_, '_>) -> Result<(), Error> {
        if self.placement.one_grid {
            return Err(ErrorKind::OneGrid.into());
        }
        match Ready::new(self, queue, launch)? {
            Some(ready) => {
                ready.bind()?;
                ready.queue()
            }
            None => Ok(()),
        }
    }

    fn launch_all(&self, queues: &[Queue<'_>], launches: Vec<Launch<'_, '_>>) -> Result<(), Error> {
        let expected = launches.len();
        if queues.len() != expected {
            return Err(ErrorKind::Count { what: "queues", expected, got: queues.len() }.into());
        }
        let one_grid = self.placement.one_grid;
        if !launches[0].regions.is_empty() && !one_grid {
            for (second, queue) in queues.iter().enumerate() {
                let handle = Handle::of(*queue)?.number();
                let same = |q: &Queue<'_>| Handle::of(*q).is_ok_and(|q| q.number() == handle);
                if let Some(first) = queues[..second].iter().position(same) {
                    return Err(ErrorKind::SharedStream { first: first as u32, second: second as u32 }.into());
                }
            }
        }
        let mut all = Vec::with_capacity(expected);
        for (launch, queue) in launches.into_iter().zip(queues) {
            let rank = launch.rank;
            let queue = if one_grid { queues[0] } else { *queue };
            all.extend(Ready::new(self, queue, launch).map_err(|e| e.on(rank))?);
        }
        all.iter().try_for_each(Ready::bind)?;
        if one_grid {
            return one_grid::queue(&all);
        }
        all.into_iter().try_for_each(Ready::queue)
    }

    fn compiled(&self) -> Vec<Arc<nvrtc::Compiled>> {
        self.loaded.get().into_iter().flatten().map(|loaded| Arc::clone(&loaded.compiled)).collect()
    }

    fn driver_launch(&self, queue: Queue<'_>, launch: Launch<'_, '_>) -> Result<DriverLaunch, Error> {
        let piece = pieces(launch.tokens, launch.tokens_per_kernel).next();
        let ready = Ready::new(self, queue, launch)?;
        let none = || Error::from(ErrorKind::Count { what: "tokens", expected: 1, got: 0 });
        let (ready, (first, tokens)) = ready.zip(piece).ok_or_else(none)?;
        Ok(ready.driver_launch(first, tokens))
    }
}

impl fmt::Debug for CudaCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaCode({} variants on {})", self.variants.len(), self.shared.device.name)
    }
}
