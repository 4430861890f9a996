//! Outputs that seamline allocates for its user.

use super::DriverContext;
use crate::args::signature::Kind;
use crate::args::{Destination, Extent, Input, Output, Source};
use crate::error::{Error, ErrorKind};
use crate::kernel::Kernel;
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
        let extent = buffer.extent();
        Output { memory: Destination::device(&mut buffer.bytes), extent }
    }
}

impl<'a> From<&'a OutputBuffer> for Input<'a> {
    /// For the next seam, which reads it.
    fn from(buffer: &'a OutputBuffer) -> Input<'a> {
        Input { memory: Source::Device(&buffer.bytes), extent: buffer.extent() }
    }
}

impl OutputBuffer {
    fn extent(&self) -> Extent {
        Extent { dtype: self.dtype, len: self.bytes.len() / self.dtype.size(), shape: None }
    }
}

/// The memory of a kernel's outputs, in the order of the bundle.
#[derive(Debug)]
pub struct Outputs(Vec<OutputBuffer>);

impl Outputs {
    /// The output of this name.
    pub fn get(&self, name: &str) -> Option<&OutputBuffer> {
        self.0.iter().find(|o| o.name == name)
    }

    /// The output of this name, to be held by itself: a bundle borrows several at once.
    ///
    /// ```no_run
    /// # use seamline_runtime::{Input, Kernel, Output, Pattern};
    /// # fn f<P: Pattern>(kernel: &Kernel<P>, stream: &std::sync::Arc<cudarc::driver::CudaStream>) -> Option<()> {
    /// let mut outputs = kernel.alloc(stream, 8).ok()?;
    /// let (mut residual, mut norm) = (outputs.take("residual_out")?, outputs.take("norm_out")?);
    /// let written: [Output; 2] = [(&mut residual).into(), (&mut norm).into()];
    /// // The next seam reads it.
    /// let residual_in: Input = (&residual).into();
    /// # Some(())
    /// # }
    /// ```
    pub fn take(&mut self, name: &str) -> Option<OutputBuffer> {
        let at = self.0.iter().position(|o| o.name == name)?;
        Some(self.0.remove(at))
    }
}

impl std::ops::Deref for Outputs {
    type Target = [OutputBuffer];

    fn deref(&self) -> &[OutputBuffer] {
        &self.0
    }
}

impl std::ops::DerefMut for Outputs {
    fn deref_mut(&mut self) -> &mut [OutputBuffer] {
        &mut self.0
    }
}

impl IntoIterator for Outputs {
    type Item = OutputBuffer;
    type IntoIter = std::vec::IntoIter<OutputBuffer>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<P> Kernel<P> {
    /// Zeroed memory for the outputs of `tokens` tokens, in the order of the bundle; outputs in place need
    /// none.
    ///
    /// # Errors
    /// More tokens than the kernel was prepared for, or a driver that fails.
    pub fn alloc(&self, stream: &Arc<CudaStream>, tokens: usize) -> Result<Outputs, Error> {
        let plan = &self.inner.plan;
        if tokens > plan.max_tokens {
            return Err(ErrorKind::TooManyTokens { max_tokens: plan.max_tokens, got: tokens }.into());
        }
        let outputs = plan.arguments.iter().filter(|a| a.kind == Kind::Output);
        let buffers = outputs.map(|argument| {
            let tensor = &argument.tensor;
            let bytes = tensor.bytes(tensor.elements(tokens.max(1) as u64)) as usize;
            let doing = || format!("allocating {bytes} bytes for `{}`", argument.name);
            let bytes = stream.alloc_zeros(bytes).doing(doing)?;
            Ok(OutputBuffer { name: argument.name.clone(), dtype: argument.tensor.dtype, bytes })
        });
        Ok(Outputs(buffers.collect::<Result<_, Error>>()?))
    }

    /// What the compiler said of each variant that is compiled: registers, spills, shared memory. Empty on
    /// the host.
    pub fn compiled(&self) -> Vec<Arc<super::nvrtc::Compiled>> {
        self.inner.code.compiled()
    }
}
