//! The simulator as an executor of `seamline-runtime`.

use crate::compile::Compiler;
use crate::launch::{Launch, Range};
use crate::library::{DEVICE_LAYER, Library, Source, run};
use crate::{Options, Order, SimError};
use crate::{build, cache};
use seamline_runtime::executor::{HostKernel, HostLaunch, Span};
use seamline_runtime::{Error, Executor, Group, Rank, Variant};
use std::path::PathBuf;
use std::sync::Arc;

/// The variable that names the order of [`Group::simulated`](Simulated::simulated): `forward`, `reverse`, `random:7`.
const ORDER_VARIABLE: &str = "SEAMLINE_SIM_ORDER";

/// Groups whose kernels the simulator runs.
///
/// ```no_run
/// use seamline_runtime::Group;
/// use seamline_sim::Simulated;
///
/// let ranks = Group::simulated(8)?;
/// # Ok::<(), seamline_runtime::Error>(())
/// ```
pub trait Simulated {
    /// `ranks` ranks on this machine's CPU, which run the generated source itself, in the order that
    /// `SEAMLINE_SIM_ORDER` names.
    ///
    /// # Errors
    /// More ranks than a group can have, or an order that is none.
    fn simulated(ranks: u32) -> Result<Vec<Rank>, Error>;
}

impl Simulated for Group {
    fn simulated(ranks: u32) -> Result<Vec<Rank>, Error> {
        Group::with_executor(Arc::new(Simulator::from_env()?), ranks)
    }
}

/// Runs generated kernels on the CPU.
#[derive(Clone, Debug, Default)]
pub struct Simulator {
    options: Options,
}

impl Simulator {
    /// Runs kernels as `options` say.
    pub fn new(options: Options) -> Simulator {
        Simulator { options }
    }

    /// Runs kernels in the order that `SEAMLINE_SIM_ORDER` names, to replay a run that failed; else forward.
    ///
    /// # Errors
    /// An order that is none.
    pub fn from_env() -> Result<Simulator, Error> {
        let order = match std::env::var_os(ORDER_VARIABLE).filter(|order| !order.is_empty()) {
            Some(order) => order.to_string_lossy().parse().map_err(|e| failed(SimError::Order(e)))?,
            None => Order::Forward,
        };
        Ok(Simulator::new(Options::new(order)))
    }

    /// Whether it can run here: whether there is a C++ compiler.
    ///
    /// # Errors
    /// [`SimError::NoCompiler`], in words.
    pub fn available() -> Result<(), Error> {
        Compiler::find().map(|_| ()).map_err(failed)
    }

    /// Builds a small object with the C++ compiler, whatever is kept, and loads it. Answers with the compiler.
    ///
    /// # Errors
    /// No compiler, or one that builds nothing for this machine; no folder to build in.
    pub fn try_compiler() -> Result<String, Error> {
        let text = "extern \"C\" __attribute__((visibility(\"default\"))) int answer() { return 42; }";
        build::anew("nothing", text).map(|(_, compiler)| compiler).map_err(failed)
    }

    /// The folder in which built kernels are kept from process to process, after a file was written there: see
    /// `SEAMLINE_CACHE_DIR`.
    ///
    /// # Errors
    /// [`SimError::Cache`], in words: kernels run without it, and are built by each process.
    pub fn cache() -> Result<PathBuf, Error> {
        cache::usable().map_err(failed)
    }
}

const NAME: &str = "sim";

fn failed(error: SimError) -> Error {
    Error::executor(NAME, error)
}

impl Executor for Simulator {
    fn name(&self) -> &'static str {
        NAME
    }

    fn compile(&self, variants: &[Variant]) -> Result<Box<dyn HostKernel>, Error> {
        let libraries = variants.iter().map(library).collect::<Result<_, _>>().map_err(failed)?;
        Ok(Box::new(Kernel { libraries, options: self.options.clone() }))
    }
}

fn library(variant: &Variant) -> Result<Arc<Library>, SimError> {
    let module = variant.module();
    let entries = module.entries.iter().map(|e| e.name.as_str()).collect::<Vec<_>>();
    let text = module.with_device(DEVICE_LAYER);
    Library::build(&Source { pattern: &variant.program().name, text: &text, entries: &entries })
}

#[derive(Debug)]
struct Kernel {
    /// Per variant.
    libraries: Vec<Arc<Library>>,
    options: Options,
}

impl HostKernel for Kernel {
    fn run(&self, launches: &[HostLaunch<'_>]) -> Result<(), Error> {
        let launches = launches.iter().map(|l| self.launch(l)).collect::<Vec<_>>();
        // SAFETY: the runtime has packed the words for the very source that was compiled. It vouches that the spans are valid and
        // nobody else's until the run ends, and lets no other run of the group begin before.
        unsafe { run(&launches, &self.options) }.map(|_| ()).map_err(failed)
    }
}

impl Kernel {
    fn launch(&self, launch: &HostLaunch<'_>) -> Launch {
        Launch {
            library: Arc::clone(&self.libraries[launch.variant_index()]),
            entry: launch.entry().to_owned().into(),
            rank: launch.rank(),
            grid: (launch.blocks(), 1),
            cluster: launch.cluster(),
            threads: launch.threads(),
            dependent: true,
            args: launch.words().to_vec(),
            memory: launch.spans().iter().map(range).collect(),
        }
    }
}

fn range(span: &Span<'_>) -> Range {
    Range { name: span.name.to_owned().into(), start: span.start, bytes: span.bytes, usage: span.usage }
}
