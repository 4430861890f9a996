//! Queueing kernels: the bare driver call, and the way to it from a bundle.

use super::DriverContext;
use super::code::CudaCode;
use super::driver_launch::DriverLaunch;
use super::memory::DeviceWords;
use super::streams::Handle;
use crate::args::pack::{Packing, Value, Values, Words};
use crate::args::signature::Argument;
use crate::args::{Arg, Destination, Source, check, place};
use crate::backend::{Launch, pieces};
use crate::error::{Error, ErrorKind};
use crate::plan::placement::Placement;
use crate::plan::variant::{Step, Variant};
use crate::queue::{Kind as QueueKind, Queue};
use arrayvec::ArrayVec;
use cudarc::driver::sys::{
    self, CUfunction, CUlaunchAttribute, CUlaunchAttributeID as AttributeId, CUlaunchConfig, CUstream,
};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, DriverError, SyncOnDrop};
use seamline_codegen::MAX_ARGS;
use seamline_codegen::schedule::LaunchShape;
use std::cell::OnceCell;
use std::ffi::c_void;
use std::sync::Arc;

/// What groups on GPUs run on, for messages.
pub(super) const NAME: &str = "cuda";

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

    /// The launch of a prepared kernel.
    #[inline]
    pub(super) fn planned(placement: &Placement, shape: &LaunchShape) -> Config {
        Config { dependent: placement.programmatic_launch, ..Config::of(shape) }
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

/// A launch that has passed every check.
pub(super) struct Ready<'a> {
    pub(super) code: &'a CudaCode,
    functions: &'a [CudaFunction],
    rank: u32,
    pub(super) tokens: u64,
    pub(super) tokens_per_kernel: u64,
    pub(super) variant_index: usize,
    pub(super) variant: &'a Variant,
    pub(super) stream: CUstream,
    /// Where the rank's exchanges are to be.
    handle: Option<Handle<'a>>,
    packings: &'a [Packing],
    values: Values,
    /// Dropped when the kernels are queued: they record what other streams wait for.
    _guards: ArrayVec<SyncOnDrop<'a>, MAX_ARGS>,
}

impl<'a> Ready<'a> {
    /// `None` if there is nothing to do.
    #[inline]
    pub(super) fn new(
        code: &'a CudaCode,
        queue: Queue<'a>,
        launch: Launch<'a, '_>,
    ) -> Result<Option<Ready<'a>>, Error> {
        let Launch { rank, tokens, tokens_per_kernel, variant, arguments, args, packings, .. } = launch;
        let context = &code.shared.context;
        let stream = Stream::new(context, queue)?;
        if tokens == 0 {
            return Ok(None);
        }
        context.bind_to_thread().doing(|| "binding the rank's context".into())?;
        let functions = code.functions(launch.variant_index, stream.raw)?;
        // What exchanges nothing may be on any stream.
        let handle = (!launch.regions.is_empty()).then(|| Handle::of(queue)).transpose()?;
        if let Some(handle) = handle {
            code.streams.check(rank, handle, code.placement.one_grid)?;
        }
        let mut values = [Value::default(); MAX_ARGS];
        let mut guards = ArrayVec::new();
        for ((value, arg), expected) in values.iter_mut().zip(args).zip(arguments) {
            *value = stream.resolve(expected, arg, &mut guards)?;
        }
        check::places(arguments, &values, tokens)?;
        Ok(Some(Ready {
            code,
            functions,
            rank,
            tokens,
            tokens_per_kernel,
            variant_index: launch.variant_index,
            variant,
            stream: stream.raw,
            handle,
            packings,
            values,
            _guards: guards,
        }))
    }

    /// From here on the rank's launches are on this stream. Nothing refuses the launch after this but the driver.
    #[inline]
    pub(super) fn bind(&self) -> Result<(), Error> {
        match self.handle {
            Some(handle) => Ok(self.code.streams.bind(self.rank, handle, self.code.placement.one_grid)?),
            None => Ok(()),
        }
    }

    #[inline]
    pub(super) fn queue(self) -> Result<(), Error> {
        for (first, tokens) in pieces(self.tokens, self.tokens_per_kernel) {
            let step = self.variant.step(tokens);
            let mut words = self.pack(step, first, tokens);
            let config = Config::planned(&self.code.placement, &step.shape(tokens));
            let function = self.function(step.entry).cu_function();
            // SAFETY: the context is current (`new`), and function and stream are its own; the words are
            // packed from the list that the kernel's parameter was generated from; the arguments were checked
            // against what the kernel accesses, and borrowed from the caller or vouched for by the maker of a
            // raw one, and its own memory lives until the group, when it ends, has waited for it.
            unsafe { launch_raw(function, &config, self.stream, &mut words) }
                .doing(|| format!("launching `{}`", self.variant.module().entries[step.entry].name))?;
        }
        Ok(())
    }

    /// What [`queue`](Ready::queue) would hand to the driver for `tokens` tokens from `first` on.
    pub(super) fn driver_launch(&self, first: u64, tokens: u64) -> DriverLaunch {
        let step = self.variant.step(tokens);
        DriverLaunch {
            function: self.function(step.entry).cu_function(),
            config: Config::planned(&self.code.placement, &step.shape(tokens)),
            args: self.pack(step, first, tokens).to_vec(),
        }
    }

    /// The kernel of an entry of the variant's module.
    #[inline]
    pub(super) fn function(&self, entry: usize) -> &CudaFunction {
        &self.functions[entry]
    }

    /// The kernel's argument words.
    #[inline]
    pub(super) fn pack(&self, step: &Step, first: u64, tokens: u64) -> Words {
        self.packings[step.region].pack(&self.values, first, tokens)
    }

    /// Memory of the group's device.
    pub(super) fn words(&self, count: u64) -> Result<DeviceWords, Error> {
        self.code.shared.words(count, 0)
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
    fn new(context: &'a Arc<CudaContext>, queue: Queue<'a>) -> Result<Stream<'a>, ErrorKind> {
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
            QueueKind::Raw(raw) => {
                Ok(Stream { raw: raw.cast(), managed: None, context, captured: OnceCell::new() })
            }
            QueueKind::Host(_) => {
                Err(ErrorKind::Queue { executor: NAME, expected: "a CUDA stream", got: "`Queue::host()`" })
            }
        }
    }

    /// Where an argument is, with its guard if it has one.
    #[inline]
    fn resolve(
        &self,
        expected: &Argument,
        arg: &'a mut Arg<'_>,
        guards: &mut ArrayVec<SyncOnDrop<'a>, MAX_ARGS>,
    ) -> Result<Value, ErrorKind> {
        let on_host = || ErrorKind::Memory {
            argument: expected.name.clone(),
            executor: NAME,
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

#[cfg(test)]
mod tests {
    use super::*;
    use seamline_codegen::schedule::DeviceModel;

    /// What the driver is told, by the attributes' ids.
    fn attributes(config: &Config) -> Vec<AttributeId> {
        let mut prepared = Prepared::new(config, std::ptr::null_mut());
        let config = prepared.config();
        assert!(std::ptr::eq(config.attrs, prepared.attributes.as_ptr()));
        prepared.attributes[..config.numAttrs as usize].iter().map(|attribute| attribute.id).collect()
    }

    #[test]
    fn a_launch_is_programmatic_unless_prepare_says_otherwise() {
        const CLUSTER: AttributeId = AttributeId::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        const DEPENDENT: AttributeId = AttributeId::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        let program = crate::plan::variant::tests::program(7168, 1, false);
        for (programmatic_launch, expected) in
            [(true, [vec![CLUSTER, DEPENDENT], vec![DEPENDENT]]), (false, [vec![CLUSTER], vec![]])]
        {
            let placement = Placement {
                device: DeviceModel::H200,
                ranks_per_device: 1,
                forks: 0,
                early_trigger: false,
                programmatic_launch,
                one_grid: false,
                schedules: Vec::new(),
            };
            let variant = Variant::new(program.clone(), 4096, &placement, &[]);
            // A cluster for each of few tokens, a block for each of many.
            for (tokens, expected) in [1, 4096].into_iter().zip(expected) {
                let shape = variant.step(tokens).shape(tokens);
                assert_eq!(attributes(&Config::planned(&placement, &shape)), expected, "T={tokens}");
            }
        }
    }
}
