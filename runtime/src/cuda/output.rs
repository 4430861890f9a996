//! Outputs that seamline allocates for its user.

use super::Doing;
use crate::args::{Destination, Extent, Output};
use crate::error::{Error, ErrorKind};
use crate::kernel::Kernel;
use crate::signature::Kind;
use cudarc::driver::{CudaSlice, CudaStream};
use seamline_codegen::DType;
use std::sync::Arc;

/// Device memory for one output.
#[derive(Debug)]
pub struct OutputBuffer {
    /// The output's name.
    pub name: String,
    /// Of its elements.
    pub dtype: DType,
    /// Its bytes.
    pub bytes: CudaSlice<u8>,
}

impl<'a> From<&'a mut OutputBuffer> for Output<'a> {
    fn from(buffer: &'a mut OutputBuffer) -> Output<'a> {
        let extent =
            Extent { dtype: buffer.dtype, len: buffer.bytes.len() / buffer.dtype.size(), shape: None };
        Output { memory: Destination::device(&mut buffer.bytes), extent }
    }
}

impl<P> Kernel<P> {
    /// Zeroed memory for the outputs of `tokens` tokens, in the order of the bundle; outputs in place need
    /// none.
    ///
    /// # Errors
    /// More tokens than the kernel was prepared for, or a driver that fails.
    pub fn alloc(&self, stream: &Arc<CudaStream>, tokens: usize) -> Result<Vec<OutputBuffer>, Error> {
        let plan = &self.inner.plan;
        if tokens > plan.max_tokens {
            return Err(ErrorKind::TooManyTokens { max_tokens: plan.max_tokens, got: tokens }.into());
        }
        let outputs = plan.arguments.iter().filter(|a| a.kind == Kind::Output);
        let buffers = outputs.map(|argument| {
            let bytes = tokens.max(1) * argument.width as usize * argument.dtype.size();
            let doing = || format!("allocating {bytes} bytes for `{}`", argument.name);
            let bytes = stream.alloc_zeros(bytes).doing(doing)?;
            Ok(OutputBuffer { name: argument.name.clone(), dtype: argument.dtype, bytes })
        });
        buffers.collect()
    }

    /// What the compiler said of each variant that is compiled: registers, spills, shared memory. Empty on
    /// the host.
    pub fn compiled(&self) -> Vec<Arc<super::nvrtc::Compiled>> {
        match &self.inner.runner {
            crate::kernel::Runner::Cuda(cuda) => cuda.compiled().cloned().collect(),
            crate::kernel::Runner::Host(_) => Vec::new(),
        }
    }
}
