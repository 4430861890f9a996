//! Machine code on a device.

use super::DriverContext;
use super::nvrtc::Compiled;
use crate::error::Error;
use cudarc::driver::sys::CUfunction_attribute as Attribute;
use cudarc::driver::{CudaContext, CudaFunction, CudaModule};
use cudarc::nvrtc::Ptx;
use seamline_codegen::emit::Module;
use std::sync::Arc;

/// A loaded variant: its kernels, per entry of the generated module.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) functions: Vec<CudaFunction>,
    pub(crate) compiled: Arc<Compiled>,
    _module: Arc<CudaModule>,
}

impl Loaded {
    pub(crate) fn new(
        context: &Arc<CudaContext>,
        module: &Module,
        compiled: &Arc<Compiled>,
    ) -> Result<Loaded, Error> {
        let image = Ptx::from_binary(compiled.cubin.clone());
        let loaded = context
            .load_module(image)
            .doing(|| format!("loading {} bytes for {}", compiled.cubin.len(), compiled.arch))?;
        let functions = module.entries.iter().map(|entry| {
            let doing = || format!("loading the kernel `{}`", entry.name);
            let function = loaded.load_function(&entry.name).doing(doing)?;
            // By default a kernel is loaded by its first launch, which may have to wait until the device is
            // idle: never, while the kernel of another rank polls for this one. Asking what it uses loads it
            // now.
            function.get_attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS).doing(doing)?;
            Ok(function)
        });
        let functions = functions.collect::<Result<_, Error>>()?;
        Ok(Loaded { functions, compiled: Arc::clone(compiled), _module: loaded })
    }
}
