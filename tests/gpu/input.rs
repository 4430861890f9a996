//! Typed slices, and what bad input gets that only a GPU can see.

use super::support::gpu;
use cudarc::driver::sys::{self, CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use seamline::prelude::*;
use seamline::{Error, ErrorKind, cuda};
use std::sync::Arc;

/// `norm_out = rms_norm(x + y, gamma, eps)`
#[fused_pattern(hidden = 64, dtype = bf16)]
pub fn add_norm(x: Tokens, y: Tokens, gamma: Channels, eps: Scalar) -> Tokens {
    let norm_out = rms_norm(x + y, gamma, eps);
    norm_out
}

struct Memory {
    x: CudaSlice<bf16>,
    gamma: CudaSlice<bf16>,
    norm_out: CudaSlice<bf16>,
}

impl Memory {
    fn new(stream: &Arc<CudaStream>) -> Memory {
        let ones = |n: usize| stream.clone_htod(&vec![bf16::ONE; n]).unwrap();
        Memory { x: ones(4 * 64), gamma: ones(64), norm_out: ones(4 * 64) }
    }

    fn args(&mut self) -> AddNormArgs<'_> {
        AddNormArgs {
            tokens: 4,
            x: (&self.x).into(),
            y: (&self.x).into(),
            gamma: (&self.gamma).into(),
            eps: 0.0,
            norm_out: (&mut self.norm_out).into(),
        }
    }
}

fn kernel(context: &Arc<CudaContext>) -> Kernel<AddNorm> {
    AddNorm::prepare(&Group::single(context).unwrap(), &Prepare::new(4)).unwrap()
}

fn refused<'q>(kernel: &Kernel<AddNorm>, queue: impl Into<Queue<'q>>, args: AddNormArgs<'_>) -> Error {
    kernel.launch(queue, args).unwrap_err()
}

#[test]
fn typed_slices_views_and_owned_outputs() {
    let Some(gpu) = gpu() else { return };
    let kernel = kernel(&gpu.context);
    let stream = gpu.context.new_stream().unwrap();
    let mut memory = Memory::new(&stream);
    let mut outputs = kernel.alloc(&stream, 4).unwrap();
    let longer = stream.clone_htod(&vec![bf16::ONE; 5 * 64]).unwrap();
    let view = longer.slice(2 * 64..);
    let mut args = memory.args();
    (args.tokens, args.y, args.norm_out) = (3, (&view).into(), (&mut outputs[0]).into());
    kernel.launch(&stream, args).unwrap();
    let stored = stream.clone_dtoh(&outputs[0].bytes).unwrap();
    stream.synchronize().unwrap();
    let one = bf16::ONE.to_ne_bytes();
    assert_eq!(outputs[0].name, "norm_out");
    assert!(stored.chunks(2).enumerate().all(|(i, bits)| bits == if i < 3 * 64 { one } else { [0; 2] }));
    let compiled = kernel.compiled();
    assert!(compiled.iter().flat_map(|c| &c.entries).all(|u| u.registers > 0 && u.spill_stores == 0));
    println!("{}", kernel.explain(4));
}

#[test]
fn slices_keep_their_order_across_streams() {
    let Some(gpu) = gpu() else { return };
    // A context of its own tracks events.
    let context = cuda::context(0).unwrap();
    let kernel = kernel(&context);
    let (first, second) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let mut memory = Memory::new(&first);
    for round in 0..200 {
        let x = vec![bf16::from_f32(round as f32 + 1.0); 4 * 64];
        first.memcpy_htod(&x, &mut memory.x).unwrap();
        kernel.launch(&second, memory.args()).unwrap();
        let stored = first.clone_dtoh(&memory.norm_out).unwrap();
        first.synchronize().unwrap();
        assert!(stored.iter().all(|x| *x == bf16::ONE), "round {round}");
        second.memset_zeros(&mut memory.norm_out).unwrap();
    }
    drop(gpu);
}

#[test]
fn a_context_that_is_another_librarys() {
    let Some(gpu) = gpu() else { return };
    let mut theirs = std::ptr::null_mut();
    // SAFETY: makes a context of the test's own, which is not the device's primary one.
    unsafe { sys::cuCtxCreate_v4(&mut theirs, std::ptr::null_mut(), 0, 0) }.result().unwrap();
    assert_ne!(theirs, gpu.context.cu_ctx());
    {
        // SAFETY: all that is made with it ends before it.
        let context = unsafe { cuda::raw_context(theirs.cast()) }.unwrap();
        assert_eq!((context.cu_ctx(), context.ordinal()), (theirs, 0));
        let stream = context.new_stream().unwrap();
        let mut memory = Memory::new(&stream);
        stream.memset_zeros(&mut memory.norm_out).unwrap();
        kernel(&context).launch(&stream, memory.args()).unwrap();
        let stored = stream.clone_dtoh(&memory.norm_out).unwrap();
        stream.synchronize().unwrap();
        assert!(stored.iter().all(|x| *x == bf16::ONE));
        // A stream of another context of the device is none of its.
        let error = refused(&kernel(&context), &gpu.context.new_stream().unwrap(), memory.args());
        assert!(matches!(error.kind(), ErrorKind::Device { .. }), "{error}");
    }
    // It was not seamline's to destroy.
    // SAFETY: the test made it, and nothing uses it any more.
    unsafe { sys::cuCtxDestroy_v2(theirs) }.result().unwrap();
    gpu.context.bind_to_thread().unwrap();
}

#[test]
fn tracked_slices_in_a_capture() {
    let Some(gpu) = gpu() else { return };
    let context = cuda::context(0).unwrap();
    let stream = context.new_stream().unwrap();
    let mut memory = Memory::new(&stream);
    stream.synchronize().unwrap();
    // The other's is the same context of the driver, and tracks nothing itself.
    for kernel in [kernel(&context), kernel(&gpu.context)] {
        stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).unwrap();
        let error = refused(&kernel, &stream, memory.args());
        stream.end_capture(CUgraphInstantiate_flags(0)).unwrap();
        assert!(
            matches!(error.kind(), ErrorKind::TrackedCapture { argument, .. } if argument == "x"),
            "{error}"
        );
        assert!(error.to_string().contains("disable_event_tracking"), "{error}");
    }
}

#[test]
fn host_memory_on_a_gpu() {
    let Some(gpu) = gpu() else { return };
    let stream = gpu.context.new_stream().unwrap();
    let mut memory = Memory::new(&stream);
    let host = vec![bf16::ONE; 4 * 64];
    let mut args = memory.args();
    args.y = (&host).into();
    let error = refused(&kernel(&gpu.context), &stream, args);
    assert!(matches!(error.kind(), ErrorKind::Memory { argument, .. } if argument == "y"), "{error}");
    assert!(error.to_string().contains("`y` is a host slice, and this rank runs on `cuda`"), "{error}");
}

#[test]
fn device_memory_on_a_host() {
    let Some(gpu) = gpu() else { return };
    let stream = gpu.context.new_stream().unwrap();
    let mut memory = Memory::new(&stream);
    let kernel = AddNorm::prepare(&Group::reference(1).unwrap()[0], &Prepare::new(4)).unwrap();
    let error = refused(&kernel, Queue::host(), memory.args());
    assert!(matches!(error.kind(), ErrorKind::Memory { argument, .. } if argument == "x"), "{error}");
    let error = refused(&kernel, &stream, memory.args());
    assert!(matches!(error.kind(), ErrorKind::Queue { .. }), "{error}");
}

#[test]
fn queues_that_are_none() {
    let Some(gpu) = gpu() else { return };
    let stream = gpu.context.new_stream().unwrap();
    let kernel = kernel(&gpu.context);
    let mut memory = Memory::new(&stream);
    let error = refused(&kernel, Queue::host(), memory.args());
    assert!(matches!(error.kind(), ErrorKind::Queue { executor: "cuda", .. }), "{error}");
    // SAFETY: a stream of the context, which outlives the launch.
    let raw = unsafe { Queue::raw(stream.cu_stream().cast()) };
    let error = refused(&kernel, raw, memory.args());
    assert!(matches!(error.kind(), ErrorKind::RawStream { argument, .. } if argument == "x"), "{error}");
    assert!(error.to_string().contains("wrap_borrowed_stream"), "{error}");
}

#[test]
fn misaligned_views() {
    let Some(gpu) = gpu() else { return };
    let stream = gpu.context.new_stream().unwrap();
    let mut memory = Memory::new(&stream);
    let longer = stream.clone_htod(&vec![bf16::ONE; 5 * 64]).unwrap();
    let view = longer.slice(1..);
    let mut args = memory.args();
    args.y = (&view).into();
    let error = refused(&kernel(&gpu.context), &stream, args);
    assert!(matches!(error.kind(), ErrorKind::Misaligned { expected: 16, .. }), "{error}");
}

#[test]
fn loopback_groups_of_no_ranks_or_too_many() {
    let Some(gpu) = gpu() else { return };
    for ranks in [0, 9] {
        let error = Group::loopback(&gpu.context, ranks).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::GroupSize { got, .. } if *got == ranks), "{error}");
    }
}

#[test]
fn a_second_device_if_there_is_one() {
    let Some(gpu) = gpu() else { return };
    let Ok(other) = cuda::context(1) else {
        eprintln!("SKIPPED: there is one device");
        return;
    };
    let (stream, elsewhere) = (gpu.context.new_stream().unwrap(), other.new_stream().unwrap());
    let kernel = kernel(&gpu.context);
    let mut memory = Memory::new(&stream);
    let error = refused(&kernel, &elsewhere, memory.args());
    assert!(matches!(error.kind(), ErrorKind::Device { .. }), "{error}");
    let mut remote = Memory::new(&elsewhere);
    let error = refused(&kernel, &stream, remote.args());
    assert!(matches!(error.kind(), ErrorKind::Device { what, .. } if what == "`x`"), "{error}");
}
