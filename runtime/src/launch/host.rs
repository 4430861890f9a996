//! Launches on host executors.

use super::{admit, pieces};
use crate::args::{Arg, ArgList, Destination, Source};
use crate::check;
use crate::error::{Error, ErrorKind};
use crate::executor::{HostKernel, HostLaunch, Span, Usage};
use crate::group::{Backend, lock};
use crate::kernel::Inner;
use crate::pack::{Value, Values};
use crate::queue::{Kind as QueueKind, Queue};
use crate::signature::{Argument, Kind, Rows};
use crate::variant::Variant;
use seamline_codegen::abi::STATUS_WORDS;
use seamline_codegen::{MAX_ARGS, OutputId, ParamId, reference};
use std::sync::atomic::Ordering;

pub(crate) fn launch(
    kernel: &Inner,
    host: &dyn HostKernel,
    queue: Queue<'_>,
    tokens: usize,
    args: &mut ArgList<'_>,
) -> Result<(), Error> {
    let ranks = kernel.plan.variants[0].program().dims.ranks;
    if ranks > 1 {
        return Err(ErrorKind::NeedsLaunchAll { executor: kernel.rank.executor(), ranks }.into());
    }
    on_host(kernel, queue)?;
    run(host, &[kernel], &[Bound::new(kernel, tokens, args)?], tokens)
}

pub(crate) fn launch_all(
    kernels: &[&Inner],
    host: &dyn HostKernel,
    queues: &[Queue<'_>],
    tokens: usize,
    args: &mut [ArgList<'_>],
) -> Result<(), Error> {
    if queues.len() != kernels.len() && queues.len() != 1 {
        return Err(ErrorKind::Count { what: "queues", expected: kernels.len(), got: queues.len() }.into());
    }
    queues.iter().try_for_each(|queue| on_host(kernels[0], *queue))?;
    let bound = kernels.iter().zip(args).map(|(kernel, args)| {
        Bound::new(kernel, tokens, args).map_err(|e| e.of(&kernel.plan.graph.name, Some(kernel.rank.index)))
    });
    let bound = bound.collect::<Result<Vec<_>, _>>()?;
    for (kernel, rank) in kernels.iter().zip(&bound) {
        kernel.plan.presence_fits(bound[0].variant_index, rank.rank, rank.variant_index)?;
    }
    run(host, kernels, &bound, tokens)
}

/// The queue must be the calling thread.
#[cfg_attr(not(feature = "cuda"), expect(unused_variables, reason = "there is no other queue"))]
fn on_host(kernel: &Inner, queue: Queue<'_>) -> Result<(), ErrorKind> {
    match queue.0 {
        QueueKind::Host(_) => Ok(()),
        #[cfg(feature = "cuda")]
        QueueKind::Stream(_) | QueueKind::Raw(_) => Err(ErrorKind::Queue {
            executor: kernel.rank.executor(),
            expected: "`Queue::host()`",
            got: "a CUDA stream",
        }),
    }
}

fn run(host: &dyn HostKernel, kernels: &[&Inner], bound: &[Bound<'_>], tokens: usize) -> Result<(), Error> {
    let mut launches = Vec::new();
    for (first, tokens) in pieces(kernels[0], tokens) {
        for (kernel, bound) in kernels.iter().zip(bound) {
            let step = bound.variant.step(tokens);
            launches.push(HostLaunch {
                bound,
                first_token: first,
                tokens,
                words: kernel.pack(bound.variant_index, step, &bound.values, (first, tokens)).to_vec(),
                shape: step.shape(tokens),
                entry: step.entry,
                region: step.region,
            });
        }
    }
    if launches.is_empty() {
        return Ok(());
    }
    let _running = match &kernels[0].rank.group.backend {
        Backend::Host(group) => Some(lock(&group.running)),
        #[cfg(feature = "cuda")]
        Backend::Cuda(_) => None,
    };
    host.run(&launches)
}

/// A bundle whose memory is known and fits.
#[derive(Debug)]
pub(crate) struct Bound<'a> {
    pub(crate) rank: u32,
    pub(crate) variant_index: usize,
    pub(crate) variant: &'a Variant,
    values: Values,
    kernel: &'a Inner,
}

impl<'a> Bound<'a> {
    fn new(kernel: &'a Inner, tokens: usize, args: &ArgList<'_>) -> Result<Bound<'a>, Error> {
        let variant_index = admit(kernel, tokens, args)?;
        let arguments = &kernel.plan.arguments;
        let mut values = [Value::default(); MAX_ARGS];
        for ((value, arg), expected) in values.iter_mut().zip(args).zip(arguments) {
            *value = resolve(kernel, expected, arg)?;
        }
        // As on a GPU, nothing is asked of what no token touches.
        if tokens > 0 {
            check::places(arguments, &values, tokens as u64)?;
        }
        let variant = &kernel.plan.variants[variant_index];
        Ok(Bound { rank: kernel.rank.index, variant_index, variant, values, kernel })
    }

    fn arguments(&self) -> impl Iterator<Item = (&Argument, Value)> {
        self.kernel.plan.arguments.iter().zip(self.values)
    }

    /// The argument of output `id`: that of its parameter, or its own.
    fn output(&self, id: OutputId) -> (&Argument, Value) {
        let program = self.variant.program();
        let before = &program.outputs[..id.0 as usize];
        let at = match program.outputs[id.0 as usize].in_place {
            Some(param) => param.0 as usize,
            None => program.params.len() + before.iter().filter(|o| o.in_place.is_none()).count(),
        };
        (&self.kernel.plan.arguments[at], self.values[at])
    }

    /// What `tokens` tokens from `first` on touch of an argument: where, and how many bytes.
    fn touched(argument: &Argument, value: Value, first: u64, tokens: u64) -> (u64, u64) {
        let bytes = argument.touched(tokens, value.len) * argument.dtype.size() as u64;
        (value.word + first * argument.token_bytes(), bytes)
    }

    pub(crate) fn input(&self, param: ParamId, first: u64, tokens: u64) -> reference::Input<'_> {
        let (argument, value) =
            (&self.kernel.plan.arguments[param.0 as usize], self.values[param.0 as usize]);
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
        assert_eq!(rows.len() as u64, bytes, "rows of `{}`", argument.name);
        let pointer: *mut u8 = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: as for `input`; the memory is borrowed mutably by the bundle, or its maker vouches for it, and
        // the caller promises that nobody else uses it now.
        unsafe { std::ptr::copy_nonoverlapping(rows.as_ptr(), pointer, rows.len()) }
    }

    pub(crate) fn count_out_of_range(&self, indices: u64) {
        if let Some(words) = self.kernel.rank.control().status.words() {
            words[STATUS_WORDS - 1].fetch_add(indices as u32, Ordering::Relaxed);
        }
    }

    pub(crate) fn spans(&self, region: usize, first: u64, tokens: u64) -> Vec<Span<'_>> {
        let mut spans = Vec::new();
        for (argument, value) in self.arguments().filter(|(a, v)| a.kind != Kind::Scalar && v.len > 0) {
            let (start, bytes) = Self::touched(argument, value, first, tokens);
            let usage = match argument.kind {
                Kind::InPlace | Kind::Output => Usage::Output,
                _ if argument.constant => Usage::Weights,
                _ => Usage::Input,
            };
            debug_assert!(argument.rows != Rows::One || first * argument.token_bytes() == 0);
            spans.push(Span { name: &argument.name, start, bytes, usage });
        }
        let control = self.kernel.rank.control();
        for (name, memory) in [("status", &control.status), ("host_status", &control.mirror)] {
            spans.push(Span { name, start: memory.address(), bytes: memory.bytes(), usage: Usage::Control });
        }
        let Some(region) = self.kernel.regions.get(region) else { return spans };
        let own = &region.ranks[self.rank as usize];
        let whole = |name, memory: &crate::memory::Memory, usage| Span {
            name,
            start: memory.address(),
            bytes: memory.bytes(),
            usage,
        };
        spans.push(whole("epochs", &own.epochs, Usage::Control));
        spans.push(whole("region", &own.slots, Usage::Inbox));
        for (rank, peer) in region.ranks.iter().enumerate() {
            spans.extend(region.layout.outboxes(self.rank, region.slots).map(|outbox| Span {
                name: "region",
                start: peer.slots.address() + outbox.start,
                bytes: outbox.bytes,
                usage: Usage::Outbox { rank: rank as u32, row: outbox.piece, stride: outbox.stride },
            }));
        }
        spans
    }
}

/// Where an argument is.
#[cfg_attr(not(feature = "cuda"), expect(unused_variables, reason = "all memory is the host's"))]
fn resolve(kernel: &Inner, expected: &Argument, arg: &Arg<'_>) -> Result<Value, ErrorKind> {
    #[cfg(feature = "cuda")]
    let elsewhere = || ErrorKind::Memory {
        argument: expected.name.clone(),
        executor: kernel.rank.executor(),
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
