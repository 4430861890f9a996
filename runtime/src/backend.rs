//! What runs a group's kernels. It is handed data, and knows nothing of groups, plans and kernels.

use crate::args::ArgList;
use crate::args::pack::Packing;
use crate::args::signature::Argument;
#[cfg(feature = "cuda")]
use crate::cuda::{driver_launch::DriverLaunch, nvrtc::Compiled};
use crate::error::Error;
use crate::group::agreement::Agreement;
use crate::group::control::Control;
use crate::group::memory::{Mirror, Own};
use crate::group::region::Region;
use crate::group::transport::Transport;
use crate::plan::placement::Placement;
use crate::plan::variant::Variant;
use crate::queue::Queue;
use seamline_codegen::schedule::DeviceModel;
use std::fmt;
use std::sync::Arc;

/// What is known of a backend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    /// Its name: `cuda`, or the executor's.
    pub(crate) name: &'static str,
    /// What launches are shaped by.
    pub(crate) device: DeviceModel,
    /// Ranks whose kernels need room on one device at the same time.
    pub(crate) ranks_per_device: u32,
    /// Whether kernels exchange through memory: whether a group needs regions, and long launches are cut to fit them.
    pub(crate) exchanges_through_memory: bool,
    /// The most that the device's memory can move, where that is known.
    pub(crate) peak_bytes_per_second: Option<f64>,
}

/// Runs the kernels of one group: of its ranks that are in this process.
pub(crate) trait Backend: fmt::Debug + Send + Sync {
    fn info(&self) -> Info;

    /// For another group of as many ranks in the same places, with the same code.
    fn fork(&self) -> Box<dyn Backend>;

    /// `words` words for the kernels of `rank`, each of them `fill`.
    fn allocate(&self, rank: u32, words: u64, fill: u32) -> Result<Own, Error>;

    /// Zeros that the kernels of `rank` write and the host reads meanwhile.
    fn mirror(&self, rank: u32, words: u64) -> Result<Mirror, Error>;

    /// How kernels of `user` reach what `owner` has.
    fn transport(&self, owner: u32, user: u32) -> &dyn Transport;

    /// All that is slow. What agrees is compiled once, for all ranks.
    fn compile(&self, build: &Build<'_>) -> Result<Arc<dyn Code>, Error>;

    /// Does `work` when nothing runs that was queued before, and keeps the group from running anything meanwhile.
    fn while_idle(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<(), Error>;

    /// Lets what `rank` has queued come before what it will queue on `queue`.
    #[cfg(feature = "cuda")]
    fn move_to(&self, rank: u32, queue: Queue<'_>) -> Result<(), Error>;

    /// The CUDA context of `rank`, if it has one.
    #[cfg(feature = "cuda")]
    fn context(&self, rank: u32) -> Option<&Arc<cudarc::driver::CudaContext>>;
}

/// What is to be compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Build<'a> {
    /// What its ranks agree on: two builds with equal ones are the same.
    pub(crate) agreement: &'a Agreement,
    pub(crate) variants: &'a Arc<[Variant]>,
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "hosts hold any number of clusters"))]
    pub(crate) placement: &'a Placement,
    /// At the first launch, where that is possible.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "hosts compile at once"))]
    pub(crate) lazy: bool,
}

/// What a [`Backend`] has compiled: it launches on all ranks of the group.
pub(crate) trait Code: fmt::Debug + Send + Sync {
    fn launch(&self, queue: Queue<'_>, launch: Launch<'_, '_>) -> Result<(), Error>;

    /// One launch of every rank, in rank order. Nothing is queued unless all can be.
    fn launch_all(&self, queues: &[Queue<'_>], launches: Vec<Launch<'_, '_>>) -> Result<(), Error>;

    /// What the compiler said of each variant that is compiled.
    #[cfg(feature = "cuda")]
    fn compiled(&self) -> Vec<Arc<Compiled>>;

    /// What [`launch`](Code::launch) would hand to the driver first.
    #[cfg(feature = "cuda")]
    fn driver_launch(&self, queue: Queue<'_>, launch: Launch<'_, '_>) -> Result<DriverLaunch, Error>;
}

/// One rank's launch: arguments that fit, and all that is needed to run them.
#[derive(Debug)]
pub(crate) struct Launch<'a, 'b> {
    pub(crate) rank: u32,
    pub(crate) tokens: u64,
    /// Tokens of one kernel; more run as several.
    pub(crate) tokens_per_kernel: u64,
    pub(crate) variant_index: usize,
    pub(crate) variant: &'a Variant,
    pub(crate) arguments: &'a [Argument],
    pub(crate) args: &'a mut ArgList<'b>,
    /// By the region that a step of the variant exchanges through; one where it exchanges nothing.
    pub(crate) packings: &'a [Packing],
    pub(crate) control: &'a Control,
    /// What it exchanges through, each step by one of them.
    pub(crate) regions: &'a [Arc<Region>],
}

/// The kernels of a launch: each one's first token and how many it has.
#[inline]
pub(crate) fn pieces(tokens: u64, tokens_per_kernel: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut first = 0;
    std::iter::from_fn(move || {
        let count = tokens_per_kernel.min(tokens - first);
        let piece = (first, count);
        first += count;
        (count > 0).then_some(piece)
    })
}
