//! Memory of a GPU whose dtype is known at run time.

use anyhow::{Context, Result, bail};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};
use half::{bf16, f16};
use seamline::{DType, Input, Output};
use seamline_codegen::reference::Buffer;
use std::sync::Arc;

/// Elements of one dtype on a GPU.
pub enum DeviceBuffer {
    Bf16(CudaSlice<bf16>),
    F16(CudaSlice<f16>),
    F32(CudaSlice<f32>),
    I32(CudaSlice<i32>),
}

impl DeviceBuffer {
    /// A copy of `buffer`.
    pub fn copy(stream: &Arc<CudaStream>, buffer: &Buffer) -> Result<DeviceBuffer> {
        macro_rules! copy {
            ($variant:ident) => {{
                let elements = buffer.as_slice().context("a buffer of another dtype")?;
                DeviceBuffer::$variant(stream.clone_htod(elements).context("cannot copy to the GPU")?)
            }};
        }
        Ok(match buffer.dtype() {
            DType::Bf16 => copy!(Bf16),
            DType::F16 => copy!(F16),
            DType::F32 => copy!(F32),
            DType::I32 => copy!(I32),
            other => bail!("{other} cannot be copied to a GPU"),
        })
    }

    /// Where it is, for work on `stream`.
    pub fn address(&self, stream: &Arc<CudaStream>) -> u64 {
        match self {
            DeviceBuffer::Bf16(slice) => slice.device_ptr(stream).0,
            DeviceBuffer::F16(slice) => slice.device_ptr(stream).0,
            DeviceBuffer::F32(slice) => slice.device_ptr(stream).0,
            DeviceBuffer::I32(slice) => slice.device_ptr(stream).0,
        }
    }

    /// Copies it to `buffer`, and waits for that.
    pub fn read(&self, stream: &Arc<CudaStream>, buffer: &mut Buffer) -> Result<()> {
        macro_rules! read {
            ($slice:expr) => {{
                let elements = buffer.as_mut_slice().context("a buffer of another dtype")?;
                stream.memcpy_dtoh($slice, elements).context("cannot copy from the GPU")?;
            }};
        }
        match self {
            DeviceBuffer::Bf16(slice) => read!(slice),
            DeviceBuffer::F16(slice) => read!(slice),
            DeviceBuffer::F32(slice) => read!(slice),
            DeviceBuffer::I32(slice) => read!(slice),
        }
        stream.synchronize().context("the GPU reports an error")
    }
}

impl<'a> From<&'a DeviceBuffer> for Input<'a> {
    fn from(buffer: &'a DeviceBuffer) -> Self {
        match buffer {
            DeviceBuffer::Bf16(slice) => slice.into(),
            DeviceBuffer::F16(slice) => slice.into(),
            DeviceBuffer::F32(slice) => slice.into(),
            DeviceBuffer::I32(slice) => slice.into(),
        }
    }
}

impl<'a> From<&'a mut DeviceBuffer> for Output<'a> {
    fn from(buffer: &'a mut DeviceBuffer) -> Self {
        match buffer {
            DeviceBuffer::Bf16(slice) => slice.into(),
            DeviceBuffer::F16(slice) => slice.into(),
            DeviceBuffer::F32(slice) => slice.into(),
            DeviceBuffer::I32(slice) => slice.into(),
        }
    }
}
