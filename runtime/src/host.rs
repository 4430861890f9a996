//! A group whose kernels run on the host.

pub mod executor;
pub(crate) mod launch;
pub(crate) mod reference;

use crate::error::Error;
use crate::group::agreement::Agreement;
use crate::host::executor::{Executor, HostKernel};
use crate::sync::lock;
use std::sync::{Arc, Mutex};

/// A group on the host.
#[derive(Debug)]
pub(crate) struct HostGroup {
    host: Arc<Host>,
    /// Held by the run that is under way.
    pub(crate) running: Mutex<()>,
}

/// What a group shares with its forks.
#[derive(Debug)]
struct Host {
    executor: Arc<dyn Executor>,
    /// What was compiled, and for what. Kept until the last group ends, as a device keeps what it has loaded.
    compiled: Mutex<Vec<(Agreement, Arc<dyn HostKernel>)>>,
}

impl HostGroup {
    pub(crate) fn new(executor: Arc<dyn Executor>) -> HostGroup {
        let host = Arc::new(Host { executor, compiled: Mutex::new(Vec::new()) });
        HostGroup { host, running: Mutex::new(()) }
    }

    /// Another group on the same executor.
    pub(crate) fn fork(&self) -> HostGroup {
        HostGroup { host: Arc::clone(&self.host), running: Mutex::new(()) }
    }

    pub(crate) fn executor(&self) -> &dyn Executor {
        &*self.host.executor
    }

    /// What `compile` makes, or made for another rank.
    pub(crate) fn compiled(
        &self,
        agreement: &Agreement,
        compile: impl FnOnce() -> Result<Box<dyn HostKernel>, Error>,
    ) -> Result<Arc<dyn HostKernel>, Error> {
        let mut all = lock(&self.host.compiled);
        if let Some((_, found)) = all.iter().find(|(of, _)| of == agreement) {
            return Ok(Arc::clone(found));
        }
        let kernel: Arc<dyn HostKernel> = compile()?.into();
        all.push((agreement.clone(), Arc::clone(&kernel)));
        Ok(kernel)
    }
}
