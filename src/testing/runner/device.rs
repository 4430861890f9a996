//! Launches on a GPU, with memory whose dtype is known at run time.

use super::{Runner, bundle};
use crate::{DType, Error, Input, Output, Rank, erased};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DriverError};
use half::{bf16, f16};
use seamline_codegen::Program;
use seamline_codegen::reference::Buffer;
use seamline_codegen::workload::Argument;
use std::sync::{Arc, Mutex, PoisonError};

/// One per rank, since a rank that waits must not keep the others from running.
pub(super) type Streams = Vec<Arc<CudaStream>>;

/// Streams for `ranks`, or none where they are on the host.
pub(super) fn streams(ranks: &[Rank]) -> Result<Streams, Error> {
    ranks.iter().filter_map(Rank::context).map(|context| context.new_stream().map_err(failed)).collect()
}

/// Copies, launches on all ranks, and copies back.
pub(super) fn launch(
    runner: &Runner,
    program: &Program,
    tokens: usize,
    arguments: &[&[Argument]],
    outputs: &mut [Vec<Buffer>],
) -> Result<(), Error> {
    // Tests run in threads. Of ranks that share a hardware queue with others' waiting ranks, none may ever begin.
    static ONE: Mutex<()> = Mutex::new(());
    let _alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let streams = &runner.streams;
    // Another runner of the same group may have run since.
    for (rank, stream) in runner.ranks.iter().zip(streams) {
        rank.move_to(stream)?;
    }
    let mut inputs = Vec::new();
    let mut results = Vec::new();
    for (rank, stream) in streams.iter().enumerate() {
        let copy = |argument: &Argument| {
            argument.tensor().map(|buffer| DeviceBuffer::copy(stream, buffer)).transpose()
        };
        inputs.push(arguments[rank].iter().map(copy).collect::<Result<Vec<_>, _>>()?);
        let copy = |buffer| DeviceBuffer::copy(stream, buffer);
        results.push(outputs[rank].iter().map(copy).collect::<Result<Vec<_>, _>>()?);
    }
    // No rank begins before all copies are there: they may share the engine that a waiting rank would hold up.
    streams.iter().try_for_each(|stream| stream.synchronize()).map_err(failed)?;
    let bundles = results.iter_mut().zip(&inputs).zip(arguments).map(|((results, inputs), arguments)| {
        (tokens, bundle(program, arguments, |at| inputs[at].as_ref().map(Input::from), results))
    });
    erased::launch_all(&runner.kernels, streams, bundles)?;
    for ((stream, results), outputs) in streams.iter().zip(&results).zip(outputs) {
        for (result, output) in results.iter().zip(outputs) {
            result.read(stream, output)?;
        }
    }
    Ok(())
}

fn failed(error: DriverError) -> Error {
    Error::executor("cuda", error)
}

fn unsupported(dtype: DType) -> Error {
    let reason =
        format!("a buffer of {dtype} cannot be copied to one of another dtype or length: make it alike");
    Error::executor("cuda", reason)
}

/// Elements of one dtype on a GPU.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeviceBuffer {
    /// None at all: a GPU does not allocate nothing.
    Empty(DType),
    /// bf16.
    Bf16(CudaSlice<bf16>),
    /// f16.
    F16(CudaSlice<f16>),
    /// f32.
    F32(CudaSlice<f32>),
    /// i32.
    I32(CudaSlice<i32>),
    /// e4m3, a byte each.
    E4m3(CudaSlice<u8>),
}

impl DeviceBuffer {
    /// A copy of `buffer`.
    ///
    /// # Errors
    /// A dtype that no argument has, or a driver that fails.
    pub fn copy(stream: &Arc<CudaStream>, buffer: &Buffer) -> Result<DeviceBuffer, Error> {
        macro_rules! copy {
            ($variant:ident) => {{
                let elements = buffer.as_slice().ok_or_else(|| unsupported(buffer.dtype()))?;
                DeviceBuffer::$variant(stream.clone_htod(elements).map_err(failed)?)
            }};
        }
        Ok(match buffer.dtype() {
            dtype if buffer.is_empty() => DeviceBuffer::Empty(dtype),
            DType::Bf16 => copy!(Bf16),
            DType::F16 => copy!(F16),
            DType::F32 => copy!(F32),
            DType::I32 => copy!(I32),
            DType::E4m3 => copy!(E4m3),
        })
    }

    /// Where it is, for work on `stream`.
    pub fn address(&self, stream: &Arc<CudaStream>) -> u64 {
        match self {
            DeviceBuffer::Empty(_) => 0,
            DeviceBuffer::Bf16(slice) => slice.device_ptr(stream).0,
            DeviceBuffer::F16(slice) => slice.device_ptr(stream).0,
            DeviceBuffer::F32(slice) => slice.device_ptr(stream).0,
            DeviceBuffer::I32(slice) => slice.device_ptr(stream).0,
            DeviceBuffer::E4m3(slice) => slice.device_ptr(stream).0,
        }
    }

    /// Copies it to `buffer`, which has its dtype and is as long, and waits for that.
    ///
    /// # Errors
    /// A buffer of another dtype or length, or a driver that fails.
    pub fn read(&self, stream: &Arc<CudaStream>, buffer: &mut Buffer) -> Result<(), Error> {
        macro_rules! read {
            ($slice:expr) => {{
                let dtype = buffer.dtype();
                let elements = buffer.as_mut_slice().filter(|elements| elements.len() == $slice.len());
                stream.memcpy_dtoh($slice, elements.ok_or_else(|| unsupported(dtype))?).map_err(failed)?;
            }};
        }
        match self {
            DeviceBuffer::Empty(_) => {}
            DeviceBuffer::Bf16(slice) => read!(slice),
            DeviceBuffer::F16(slice) => read!(slice),
            DeviceBuffer::F32(slice) => read!(slice),
            DeviceBuffer::I32(slice) => read!(slice),
            DeviceBuffer::E4m3(slice) => read!(slice),
        }
        stream.synchronize().map_err(failed)
    }
}

impl<'a> From<&'a DeviceBuffer> for Input<'a> {
    fn from(buffer: &'a DeviceBuffer) -> Self {
        match buffer {
            // SAFETY: there are no elements that anyone could read.
            DeviceBuffer::Empty(dtype) => unsafe { Input::raw(0, *dtype, 0) },
            DeviceBuffer::Bf16(slice) => slice.into(),
            DeviceBuffer::F16(slice) => slice.into(),
            DeviceBuffer::F32(slice) => slice.into(),
            DeviceBuffer::I32(slice) => slice.into(),
            DeviceBuffer::E4m3(slice) => {
                let address = slice.device_ptr(slice.stream()).0;
                // SAFETY: the slice is borrowed as long as the input, and its dtype is one byte.
                unsafe { Input::raw(address, DType::E4m3, slice.len()) }
            }
        }
    }
}

impl<'a> From<&'a mut DeviceBuffer> for Output<'a> {
    fn from(buffer: &'a mut DeviceBuffer) -> Self {
        match buffer {
            // SAFETY: there are no elements that anyone could write.
            DeviceBuffer::Empty(dtype) => unsafe { Output::raw(0, *dtype, 0) },
            DeviceBuffer::Bf16(slice) => slice.into(),
            DeviceBuffer::F16(slice) => slice.into(),
            DeviceBuffer::F32(slice) => slice.into(),
            DeviceBuffer::I32(slice) => slice.into(),
            DeviceBuffer::E4m3(slice) => {
                let address = slice.device_ptr(slice.stream()).0;
                // SAFETY: as above, and mutably.
                unsafe { Output::raw(address, DType::E4m3, slice.len()) }
            }
        }
    }
}
