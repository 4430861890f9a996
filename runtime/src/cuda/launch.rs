//! Queueing kernels: the bare driver call, and the way to it from a bundle.

use super::Doing;
use super::group::CudaGroup;
use super::kernel::CudaKernel;
use super::one_grid;
use super::streams::Handle;
use crate::args::{Arg, ArgList, Destination, Source, place};
use crate::check;
use crate::error::{Error, ErrorKind};
use crate::group::Backend;
use crate::kernel::{Inner, Runner};
use crate::launch::{admit, pieces};
use crate::pack::{Value, Values};
use crate::queue::{Kind as QueueKind, Queue};
use crate::signature::Argument;
use arrayvec::ArrayVec;
use cudarc::driver::sys::{
    self, CUfunction, CUlaunchAttribute, CUlaunchAttributeID as AttributeId, CUlaunchConfig, CUstream,
};
use cudarc::driver::{CudaContext, CudaStream, DriverError, SyncOnDrop};
use seamline_codegen::MAX_ARGS;
use seamline_codegen::schedule::LaunchShape;
use std::cell::OnceCell;
use std::ffi::c_void;
use std::sync::Arc;

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Blocks in x.
    pub blocks: u32,
    /// Rows of blocks, in y.
    pub rows: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks of a cluster.
    pub cluster: u32,
    /// Whether it may start before the kernel before it has ended. Only for kernels that wait themselves
    /// (`griddepcontrol.wait`), as all that seamline generates do.
    pub dependent: bool,
}

impl Config {
    /// The launch of a generated kernel.
    pub const fn of(shape: &LaunchShape) -> Config {
        let ctas = shape.geometry.ctas;
        Config {
            blocks: shape.clusters * ctas,
            rows: 1,
            threads: shape.geometry.threads,
            cluster: ctas,
            dependent: true,
        }
    }
}

/// A [`Config`] in the driver's terms, with the memory that it points into.
pub(super) struct Prepared {
    config: CUlaunchConfig,
    attributes: [CUlaunchAttribute; 2],
}

impl Prepared {
    #[inline]
    pub(super) fn new(config: &Config, stream: CUstream) -> Prepared {
        // SAFETY: plain C structs of integers, of which all zeros is a value (the attribute `IGNORE`).
        let mut attributes: [CUlaunchAttribute; 2] = unsafe { std::mem::zeroed() };
        let mut count = 0;
        if config.cluster > 1 {
            attributes[count].id = AttributeId::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            attributes[count].value.clusterDim.x = config.cluster;
            attributes[count].value.clusterDim.y = 1;
            attributes[count].value.clusterDim.z = 1;
            count += 1;
        }
        if config.dependent {
            attributes[count].id = AttributeId::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            attributes[count].value.programmaticStreamSerializationAllowed = 1;
            count += 1;
        }
        let config = CUlaunchConfig {
            gridDimX: config.blocks,
            gridDimY: config.rows,
            gridDimZ: 1,
            blockDimX: config.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: stream,
            attrs: std::ptr::null_mut(),
            numAttrs: count as u32,
        };
        Prepared { config, attributes }
    }

    /// Valid while `self` is borrowed and stays where it is.
    #[inline]
    pub(super) fn config(&mut self) -> CUlaunchConfig {
        CUlaunchConfig { attrs: self.attributes.as_mut_ptr(), ..self.config }
    }
}

/// Launches `function`, whose one parameter is a struct of 8-byte slots: `args`.
///
/// # Safety
/// `function` and `stream` belong to the context that is current; `function` takes one such parameter of that
/// many slots; and what it does with the addresses in `args` is allowed until it has ended.
///
/// # Errors
/// The driver's.
#[inline]
pub unsafe fn launch_raw(
    function: CUfunction,
    config: &Config,
    stream: CUstream,
    args: &mut [u64],
) -> Result<(), DriverError> {
    let mut prepared = Prepared::new(config, stream);
    let config = prepared.config();
    let mut parameters = [args.as_mut_ptr().cast::<c_void>()];
    // SAFETY: the configuration and the parameter are alive until the call returns, by which the driver has
    // copied them; the caller vouches for the rest.
    unsafe { sys::cuLaunchKernelEx(&config, function, parameters.as_mut_ptr(), std::ptr::null_mut()) }
        .result()
}

/// One rank's launch.
pub(crate) fn launch(
    kernel: &Inner,
    cuda: &CudaKernel,
    queue: Queue<'_>,
    tokens: usize,
    args: &mut ArgList<'_>,
) -> Result<(), Error> {
    if kernel.plan.site.one_grid {
        return Err(ErrorKind::OneGrid.into());
    }
    match Ready::new(kernel, cuda, queue, tokens, args)? {
        Some(ready) => {
            ready.bind()?;
            ready.queue()
        }
        None => Ok(()),
    }
}

/// All ranks' launches; queues none unless all are ready.
pub(crate) fn launch_all(
    kernels: &[&Inner],
    queues: &[Queue<'_>],
    tokens: usize,
    args: &mut [ArgList<'_>],
) -> Result<(), Error> {
    if queues.len() != kernels.len() {
        return Err(ErrorKind::Count { what: "queues", expected: kernels.len(), got: queues.len() }.into());
    }
    let one_grid = kernels[0].plan.site.one_grid;
    if !kernels[0].regions.is_empty() && !one_grid {
        for (second, queue) in queues.iter().enumerate() {
            let handle = Handle::of(*queue)?.number();
            let same = |q: &Queue<'_>| Handle::of(*q).is_ok_and(|q| q.number() == handle);
            if let Some(first) = queues[..second].iter().position(same) {
                return Err(ErrorKind::SharedStream { first: first as u32, second: second as u32 }.into());
            }
        }
    }
    let mut all = Vec::with_capacity(kernels.len());
    for ((kernel, queue), args) in kernels.iter().zip(queues).zip(args) {
        let Runner::Cuda(cuda) = &kernel.runner else { continue };
        let located = |e: Error| e.of(&kernel.plan.graph.name, Some(kernel.rank.index));
        let queue = if one_grid { queues[0] } else { *queue };
        all.extend(Ready::new(kernel, cuda, queue, tokens, args).map_err(located)?);
    }
    for ready in &all {
        ready.kernel.plan.presence_fits(all[0].variant, ready.kernel.rank.index, ready.variant)?;
    }
    all.iter().try_for_each(Ready::bind)?;
    if one_grid {
        return one_grid::queue(&all);
    }
    all.into_iter().try_for_each(Ready::queue)
}

/// A launch that has passed every check.
pub(super) struct Ready<'a> {
    pub(super) kernel: &'a Inner,
    pub(super) functions: &'a [cudarc::driver::CudaFunction],
    pub(super) variant: usize,
    pub(super) stream: CUstream,
    /// Where the rank's exchanges are to be.
    handle: Option<Handle<'a>>,
    pub(super) tokens: usize,
    pub(super) values: Values,
    /// Dropped when the kernels are queued: they record what other streams wait for.
    _guards: ArrayVec<SyncOnDrop<'a>, MAX_ARGS>,
}

impl<'a> Ready<'a> {
    /// `None` if there is nothing to do.
    #[inline]
    pub(super) fn new(
        kernel: &'a Inner,
        cuda: &'a CudaKernel,
        queue: Queue<'a>,
        tokens: usize,
        args: &'a mut ArgList<'_>,
    ) -> Result<Option<Ready<'a>>, Error> {
        let group = group(kernel);
        let stream = Stream::new(kernel, group, queue)?;
        let variant = admit(kernel, tokens, args)?;
        if tokens == 0 {
            return Ok(None);
        }
        group.context().bind_to_thread().doing(|| "binding the rank's context".into())?;
        let functions = cuda.functions(kernel, variant, stream.raw)?;
        // What exchanges nothing may be on any stream.
        let handle = (!kernel.regions.is_empty()).then(|| Handle::of(queue)).transpose()?;
        if let Some(handle) = handle {
            group.streams().check(kernel.rank.index, handle, kernel.plan.site.one_grid)?;
        }
        let mut values = [Value::default(); MAX_ARGS];
        let mut guards = ArrayVec::new();
        for ((value, arg), expected) in values.iter_mut().zip(args).zip(&kernel.plan.arguments) {
            *value = stream.resolve(kernel, expected, arg, &mut guards)?;
        }
        check::places(&kernel.plan.arguments, &values, tokens as u64)?;
        Ok(Some(Ready {
            kernel,
            functions,
            variant,
            stream: stream.raw,
            handle,
            tokens,
            values,
            _guards: guards,
        }))
    }

    /// From here on the rank's launches are on this stream. Nothing refuses the launch after this but the driver.
    #[inline]
    fn bind(&self) -> Result<(), Error> {
        let (rank, shared) = (self.kernel.rank.index, self.kernel.plan.site.one_grid);
        match self.handle {
            Some(handle) => Ok(group(self.kernel).streams().bind(rank, handle, shared)?),
            None => Ok(()),
        }
    }

    #[inline]
    fn queue(self) -> Result<(), Error> {
        let variant = &self.kernel.plan.variants[self.variant];
        for (first, tokens) in pieces(self.kernel, self.tokens) {
            let step = variant.step(tokens);
            let mut words = self.kernel.pack(self.variant, step, &self.values, (first, tokens));
            let function = self.functions[step.entry].cu_function();
            // SAFETY: the context is current (`new`), and function and stream are its own; the words are
            // packed from the list that the kernel's parameter was generated from; the arguments were checked
            // against what the kernel accesses, and borrowed from the caller or vouched for by the maker of a
            // raw one, and its own memory lives until the group, when it ends, has waited for it.
            unsafe { launch_raw(function, &Config::of(&step.shape(tokens)), self.stream, &mut words) }
                .doing(|| format!("launching `{}`", variant.module().entries[step.entry].name))?;
        }
        Ok(())
    }
}

pub(super) fn group(kernel: &Inner) -> &CudaGroup {
    match &kernel.rank.group.backend {
        Backend::Cuda(group) => group,
        Backend::Host(_) => unreachable!("a CUDA kernel of a host group"),
    }
}

/// Where a launch goes, and what arguments must be like there.
struct Stream<'a> {
    raw: CUstream,
    /// For cudarc's slices.
    managed: Option<&'a Arc<CudaStream>>,
    context: &'a Arc<CudaContext>,
    /// Whether it is being captured, asked for the first slice that wants to know.
    captured: OnceCell<bool>,
}

impl<'a> Stream<'a> {
    #[inline]
    fn new(kernel: &Inner, group: &'a CudaGroup, queue: Queue<'a>) -> Result<Stream<'a>, ErrorKind> {
        let context = group.context();
        match queue.0 {
            QueueKind::Stream(stream) => {
                same_context(context, stream.context(), || "the stream".into())?;
                Ok(Stream {
                    raw: stream.cu_stream(),
                    managed: Some(stream),
                    context,
                    captured: OnceCell::new(),
                })
            }
            QueueKind::Raw(raw) => Ok(Stream { raw, managed: None, context, captured: OnceCell::new() }),
            QueueKind::Host(_) => {
                let executor = kernel.rank.executor();
                Err(ErrorKind::Queue { executor, expected: "a CUDA stream", got: "`Queue::host()`" })
            }
        }
    }

    /// Where an argument is, with its guard if it has one.
    #[inline]
    fn resolve(
        &self,
        kernel: &Inner,
        expected: &Argument,
        arg: &'a mut Arg<'_>,
        guards: &mut ArrayVec<SyncOnDrop<'a>, MAX_ARGS>,
    ) -> Result<Value, ErrorKind> {
        let on_host = || ErrorKind::Memory {
            argument: expected.name.clone(),
            executor: kernel.rank.executor(),
            expected: "a cudarc slice or a raw device address",
            got: place(false, true),
        };
        let (word, len) = match arg {
            Arg::Absent => (0, 0),
            Arg::Scalar(x) => (x.to_bits().into(), 0),
            Arg::Input(input) => {
                let word = match &input.memory {
                    Source::Raw(address) => *address,
                    Source::Device(slice) => {
                        let (address, guard) = slice.pointer(self.slices(expected, slice.context())?);
                        guards.push(guard);
                        address
                    }
                    Source::Host(..) => return Err(on_host()),
                };
                (word, input.extent.len)
            }
            Arg::Output(output) | Arg::InPlace(output) => {
                let word = match &mut output.memory {
                    Destination::Raw(address) => *address,
                    Destination::Device(slice) => {
                        // SAFETY: made of a `&mut` that lives as long as the bundle, which is borrowed
                        // mutably here.
                        let slice = unsafe { slice.as_mut() };
                        let stream = self.slices(expected, slice.context())?;
                        let (address, guard) = slice.pointer(stream);
                        guards.push(guard);
                        address
                    }
                    Destination::Host(..) => return Err(on_host()),
                };
                (word, output.extent.len)
            }
        };
        Ok(Value { word, len: len as u64 })
    }

    /// The stream for a slice of `context`, if it may be used here.
    #[inline]
    fn slices(&self, expected: &Argument, context: &Arc<CudaContext>) -> Result<&'a CudaStream, ErrorKind> {
        same_context(self.context, context, || format!("`{}`", expected.name))?;
        let Some(stream) = self.managed else {
            return Err(ErrorKind::RawStream { argument: expected.name.clone() });
        };
        // The slice's context lets the stream wait for events, and the stream's records them: neither needs to be the
        // group's, of which several objects may stand for one context.
        let tracked = context.is_event_tracking() || stream.context().is_event_tracking();
        if tracked && *self.captured.get_or_init(|| capturing(self.raw)) {
            return Err(ErrorKind::TrackedCapture { argument: expected.name.clone() });
        }
        Ok(stream)
    }
}

/// Whether `stream` is being captured into a graph.
pub(super) fn capturing(stream: CUstream) -> bool {
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: a stream of the current context; writes an enum.
    let asked = unsafe { sys::cuStreamIsCapturing(stream, &mut status) }.result();
    asked.is_ok() && status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
}

/// Two contexts of one device do not share streams, and share memory only by chance.
#[inline]
pub(super) fn same_context(
    ours: &Arc<CudaContext>,
    other: &Arc<CudaContext>,
    what: impl FnOnce() -> String,
) -> Result<(), ErrorKind> {
    if Arc::ptr_eq(ours, other) || ours.cu_ctx() == other.cu_ctx() {
        return Ok(());
    }
    let device =
        |context: &CudaContext| format!("device {} (context {:p})", context.ordinal(), context.cu_ctx());
    Err(ErrorKind::Device { what: what(), expected: device(ours), got: device(other) })
}
