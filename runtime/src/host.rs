//! A group whose kernels run on the host.

pub mod executor;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod reference;

use crate::backend::{Backend, Build, Code, Info};
use crate::error::Error;
use crate::group::agreement::Agreement;
use crate::group::memory::{Mirror, Own};
use crate::group::transport::{OneSpace, Transport};
use crate::sync::lock;
use executor::{Executor, HostKernel};
use launch::HostCode;
use memory::HostWords;
use std::sync::{Arc, Mutex};

/// A group on the host.
#[derive(Debug)]
pub(crate) struct HostGroup {
    host: Arc<Host>,
    /// Held by the run that is under way.
    running: Arc<Mutex<()>>,
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
        HostGroup { host, running: Arc::default() }
    }
}

impl Backend for HostGroup {
    fn info(&self) -> Info {
        let executor = &self.host.executor;
        Info {
            name: executor.name(),
            device: executor.device(),
            ranks_per_device: 1,
            exchanges_through_memory: executor.exchanges_through_memory(),
            peak_bytes_per_second: None,
        }
    }

    fn fork(&self) -> Box<dyn Backend> {
        Box::new(HostGroup { host: Arc::clone(&self.host), running: Arc::default() })
    }

    fn allocate(&self, _rank: u32, words: u64, fill: u32) -> Result<Own, Error> {
        Ok(Own::new(HostWords::new(words, fill)?))
    }

    fn mirror(&self, _rank: u32, words: u64) -> Result<Mirror, Error> {
        Ok(Mirror::new(HostWords::new(words, 0)?, HostWords::words))
    }

    fn transport(&self, _owner: u32, _user: u32) -> &dyn Transport {
        &OneSpace
    }

    fn compile(&self, build: &Build<'_>) -> Result<Arc<dyn Code>, Error> {
        let mut all = lock(&self.host.compiled);
        let kernel = match all.iter().find(|(of, _)| of == build.agreement) {
            Some((_, found)) => Arc::clone(found),
            None => {
                let kernel: Arc<dyn HostKernel> = self.host.executor.compile(build.variants)?.into();
                all.push((build.agreement.clone(), Arc::clone(&kernel)));
                kernel
            }
        };
        Ok(Arc::new(HostCode::new(self.host.executor.name(), kernel, &self.running)))
    }

    fn while_idle(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<(), Error> {
        let _idle = lock(&self.running);
        work()
    }

    #[cfg(feature = "cuda")]
    fn move_to(&self, _rank: u32, _queue: crate::Queue<'_>) -> Result<(), Error> {
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn context(&self, _rank: u32) -> Option<&Arc<cudarc::driver::CudaContext>> {
        None
    }
}
