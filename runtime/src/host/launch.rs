//! Launches on host executors.

use crate::args::pack::{Packing, Value, Values};
use crate::args::signature::{Argument, Kind};
use crate::args::{Arg, Destination, Source, check};
use crate::backend::{Code, Launch, pieces};
use crate::error::{Error, ErrorKind};
use crate::group::control::Control;
use crate::group::memory::Own;
use crate::group::region::Region;
use crate::host::executor::{AccessRole, HostKernel, HostLaunch, Span};
use crate::plan::variant::Variant;
use crate::queue::{Kind as QueueKind, Queue};
use crate::sync::lock;
use seamline_codegen::{MAX_ARGS, OutputId, ParamId, reference};
use std::sync::{Arc, Mutex};

/// A pattern that an executor has compiled, for the ranks of one group.
#[derive(Debug)]
pub(super) struct HostCode {
    /// The executor.
    name: &'static str,
    kernel: Arc<dyn HostKernel>,
    running: Arc<Mutex<()>>,
}

impl Code for HostCode {
    fn launch(&self, queue: Queue<'_>, launch: Launch<'_, '_>) -> Result<(), Error> {
        let ranks = launch.variant.program().dims.ranks;
        if ranks > 1 {
            return Err(ErrorKind::NeedsLaunchAll { executor: self.name, ranks }.into());
        }
        self.on_host(queue)?;
        let (tokens, most) = (launch.tokens, launch.tokens_per_kernel);
        self.run(&[Bound::new(self.name, launch)?], tokens, most)
    }

    fn launch_all(&self, queues: &[Queue<'_>], launches: Vec<Launch<'_, '_>>) -> Result<(), Error> {
        let expected = launches.len();
        if queues.len() != expected && queues.len() != 1 {
            return Err(ErrorKind::Count { what: "queues", expected, got: queues.len() }.into());
        }
        queues.iter().try_for_each(|queue| self.on_host(*queue))?;
        let (tokens, most) = (launches[0].tokens, launches[0].tokens_per_kernel);
        let bound = launches.into_iter().map(|launch| {
            let rank = launch.rank;
            Bound::new(self.name, launch).map_err(|e| Error::from(e).on(rank))
        });
        self.run(&bound.collect::<Result<Vec<_>, _>>()?, tokens, most)
    }

    #[cfg(feature = "cuda")]
    fn compiled(&self) -> Vec<Arc<crate::cuda::nvrtc::Compiled>> {
        Vec::new()
    }

    #[cfg(feature = "cuda")]
    fn driver_launch(
        &self,
        _queue: Queue<'_>,
        _launch: Launch<'_, '_>,
    ) -> Result<crate::cuda::driver_launch::DriverLaunch, Error> {
        Err(self.no_stream().into())
    }
}

impl HostCode {
    pub(super) fn new(name: &'static str, kernel: Arc<dyn HostKernel>, running: &Arc<Mutex<()>>) -> HostCode {
        HostCode { name, kernel, running: Arc::clone(running) }
    }

    /// The queue must be the calling thread.
    fn on_host(&self, queue: Queue<'_>) -> Result<(), ErrorKind> {
        match queue.0 {
            QueueKind::Host(_) => Ok(()),
            #[cfg(feature = "cuda")]
            QueueKind::Stream(_) | QueueKind::Raw(_) => Err(self.no_stream()),
        }
    }

    #[cfg(feature = "cuda")]
    fn no_stream(&self) -> ErrorKind {
        ErrorKind::Queue { executor: self.name, expected: "`Queue::host()`", got: "a CUDA stream" }
    }

    fn run(&self, bound: &[Bound<'_>], tokens: u64, tokens_per_kernel: u64) -> Result<(), Error> {
        let mut launches = Vec::new();
        for (first, tokens) in pieces(tokens, tokens_per_kernel) {
            for bound in bound {
                let step = bound.variant.step(tokens);
                launches.push(HostLaunch {
                    bound,
                    first_token: first,
                    tokens,
                    words: bound.packings[step.region].pack(&bound.values, first, tokens).to_vec(),
                    shape: step.shape(tokens),
                    entry: step.entry,
                    region: step.region,
                });
            }
        }
        if launches.is_empty() {
            return Ok(());
        }
        let _running = lock(&self.running);
        self.kernel.run(&launches)
    }
}

/// A bundle whose memory is known and fits.
#[derive(Debug)]
pub(crate) struct Bound<'a> {
    pub(crate) rank: u32,
    pub(crate) variant_index: usize,
    pub(crate) variant: &'a Variant,
    arguments: &'a [Argument],
    values: Values,
    packings: &'a [Packing],
    control: &'a Control,
    regions: &'a [Arc<Region>],
}

impl<'a> Bound<'a> {
    fn new(executor: &'static str, launch: Launch<'a, '_>) -> Result<Bound<'a>, ErrorKind> {
        let Launch {
            rank, tokens, variant_index, variant, arguments, args, packings, control, regions, ..
        } = launch;
        let mut values = [Value::default(); MAX_ARGS];
        for ((value, arg), expected) in values.iter_mut().zip(args.iter()).zip(arguments) {
            *value = resolve(executor, expected, arg)?;
        }
        // As on a GPU, nothing is asked of what no token touches.
        if tokens > 0 {
            check::places(arguments, &values, tokens)?;
        }
        Ok(Bound { rank, variant_index, variant, arguments, values, packings, control, regions })
    }

    fn arguments(&self) -> impl Iterator<Item = (&Argument, Value)> {
        self.arguments.iter().zip(self.values)
    }

    /// The argument of output `id`: that of its parameter, or its own.
    fn output(&self, id: OutputId) -> (&Argument, Value) {
        let program = self.variant.program();
        let before = &program.outputs[..id.0 as usize];
        let at = match program.outputs[id.0 as usize].in_place {
            Some(param) => param.0 as usize,
            None => program.params.len() + before.iter().filter(|o| o.in_place.is_none()).count(),
        };
        (&self.arguments[at], self.values[at])
    }

    /// What `tokens` tokens from `first` on touch of an argument: where, and how many bytes.
    fn touched(argument: &Argument, value: Value, first: u64, tokens: u64) -> (u64, u64) {
        let bytes = argument.tensor.bytes(argument.tensor.touched(tokens, value.len));
        (value.word + first * argument.token_bytes(), bytes)
    }

    pub(crate) fn input(&self, param: ParamId, first: u64, tokens: u64) -> reference::Input<'_> {
        let (argument, value) = (&self.arguments[param.0 as usize], self.values[param.0 as usize]);
        match argument.kind {
            Kind::Scalar => reference::Input::Scalar(f32::from_bits(value.word as u32)),
            _ if argument.optional && !self.variant.present().has(param) => reference::Input::Absent,
            _ => {
                let (address, bytes) = Self::touched(argument, value, first, tokens);
                if bytes == 0 {
                    return reference::Input::Bytes(&[]);
                }
                let pointer = std::ptr::with_exposed_provenance(address as usize);
                // SAFETY: the bundle borrows, or its maker vouches for, at least so many bytes
                // (`check::structure`) of plain elements for as long as the launch; and nobody writes them
                // meanwhile (`check::places`), but through `store`, whose caller promises that this borrow has
                // ended.
                reference::Input::Bytes(unsafe { std::slice::from_raw_parts(pointer, bytes as usize) })
            }
        }
    }

    /// # Safety
    /// Nothing borrows the output's memory, and no other thread stores it.
    pub(crate) unsafe fn store(&self, output: OutputId, first: u64, tokens: u64, rows: &[u8]) {
        let (argument, value) = self.output(output);
        let (address, bytes) = Self::touched(argument, value, first, tokens);
        let tensor = &argument.tensor;
        let [width, stride] = [tensor.width, tensor.stride].map(|n| tensor.bytes(n) as usize);
        let rows = rows.chunks(width);
        assert_eq!(rows.len() * stride, bytes as usize + (stride - width), "rows of `{}`", argument.name);
        let pointer: *mut u8 = std::ptr::with_exposed_provenance_mut(address as usize);
        for (i, row) in rows.enumerate() {
            // SAFETY: as for `input`; the memory is borrowed mutably by the bundle, or its maker vouches for it, and
            // the caller promises that nobody else uses it now. The last row ends where `touched` says.
            unsafe { std::ptr::copy_nonoverlapping(row.as_ptr(), pointer.add(i * stride), row.len()) }
        }
    }

    pub(crate) fn count_out_of_range(&self, indices: u64) {
        self.control.count_out_of_range(indices);
    }

    pub(crate) fn spans(&self, region: usize, first: u64, tokens: u64) -> Vec<Span<'_>> {
        let mut spans = Vec::new();
        for (argument, value) in self.arguments().filter(|(a, v)| a.kind != Kind::Scalar && v.len > 0) {
            let (start, bytes) = Self::touched(argument, value, first, tokens);
            let usage = match argument.kind {
                Kind::InPlace | Kind::Output => AccessRole::Output,
                _ if argument.is_constant() => AccessRole::Weights,
                _ => AccessRole::Input,
            };
            debug_assert!(argument.tensor.is_per_token() || first * argument.token_bytes() == 0);
            spans.push(Span { name: &argument.name, start, bytes, usage });
        }
        let whole =
            |name, memory: &Own, usage| Span { name, start: memory.address(), bytes: memory.bytes(), usage };
        spans.push(whole("status", &self.control.status, AccessRole::Control));
        spans.push(whole("host_status", self.control.mirror.own(), AccessRole::Control));
        let Some(region) = self.regions.get(region) else { return spans };
        let own = &region.ranks[self.rank as usize];
        spans.push(whole("epochs", &own.epochs, AccessRole::Control));
        spans.push(whole("region", &own.slots, AccessRole::Inbox));
        for (rank, slots) in own.reached.iter().enumerate() {
            debug_assert_eq!(slots.bytes(), region.layout.bytes(region.slots), "of every rank alike");
            spans.extend(region.layout.outboxes(self.rank, region.slots).map(|outbox| Span {
                name: "region",
                start: slots.address() + outbox.start,
                bytes: outbox.bytes,
                usage: AccessRole::Outbox { rank: rank as u32, row: outbox.piece, stride: outbox.stride },
            }));
        }
        spans
    }
}

/// Where an argument is.
#[cfg_attr(not(feature = "cuda"), expect(unused_variables, reason = "all memory is the host's"))]
fn resolve(executor: &'static str, expected: &Argument, arg: &Arg<'_>) -> Result<Value, ErrorKind> {
    #[cfg(feature = "cuda")]
    let elsewhere = || ErrorKind::Memory {
        argument: expected.name.clone(),
        executor,
        expected: "a host slice",
        got: crate::args::place(false, false),
    };
    let (word, len) = match arg {
        Arg::Absent => (0, 0),
        Arg::Scalar(x) => (x.to_bits().into(), 0),
        Arg::Input(input) => (
            match &input.memory {
                Source::Host(pointer, _) => pointer.expose_provenance() as u64,
                Source::Raw(address) => *address,
                #[cfg(feature = "cuda")]
                Source::Device(_) => return Err(elsewhere()),
            },
            input.extent.len,
        ),
        Arg::Output(output) | Arg::InPlace(output) => (
            match &output.memory {
                Destination::Host(pointer, _) => pointer.expose_provenance() as u64,
                Destination::Raw(address) => *address,
                #[cfg(feature = "cuda")]
                Destination::Device(_) => return Err(elsewhere()),
            },
            output.extent.len,
        ),
    };
    Ok(Value { word, len: len as u64 })
}
