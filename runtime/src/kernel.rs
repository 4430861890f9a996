//! A prepared kernel: the handle that launches.

use crate::args::pack::{Addresses, Packing};
use crate::args::{ArgList, check};
use crate::backend::{Build, Code, Launch};
use crate::error::{Error, ErrorKind};
use crate::explain::Explanation;
use crate::group::Rank;
use crate::group::memory::Mapping;
use crate::group::region::Region;
use crate::group::status::Status;
use crate::launch;
use crate::pattern::Pattern;
use crate::plan::Plan;
use crate::plan::variant::describe;
use crate::queue::Queue;
use seamline_codegen::abi;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A pattern, prepared on one rank. Cheap to clone: the layers of a model share one.
///
/// # Captured graphs
/// [`launch`](Kernel::launch) and [`launch_all`](crate::launch_all) can be captured once the kernel is prepared (and not
/// `lazy`); a replay checks nothing, and its `tokens` and addresses are those of the capture. So the kernel and every argument must
/// outlive the graph: keep a clone of the kernel, or its [`keep_alive`](Kernel::keep_alive), beside it.
///
/// A graph may be replayed between launches of any other number of tokens, but the ranks of what exchanges replay and
/// launch in the same order, each on its one stream. Arguments are raw, or cudarc's slices with its event tracking off
/// (`CudaContext::disable_event_tracking`): no capture allows the tracking. A fault in a replay is told by
/// [`status`](Kernel::status), and by the next launch.
pub struct Kernel<P> {
    pub(crate) inner: Arc<Inner>,
    pattern: PhantomData<fn() -> P>,
}

/// All that a launch needs.
pub(crate) struct Inner {
    pub(crate) rank: Rank,
    pub(crate) plan: Plan,
    /// Per variant and region; one per variant without regions.
    packings: Vec<Vec<Packing>>,
    /// In the plan's order.
    regions: Vec<Arc<Region>>,
    pub(crate) code: Arc<dyn Code>,
}

impl Inner {
    /// The slow part of `prepare`: allocates and compiles.
    pub(crate) fn new(rank: &Rank, plan: Plan) -> Result<Arc<Inner>, Error> {
        let group = &rank.group;
        let exchanging = plan.variants.iter().map(|v| v.program()).find(|p| p.exchanges());
        let region = |key| exchanging.map(|program| group.region(program, key));
        let regions = plan.regions.iter().filter_map(region).collect::<Result<Vec<_>, Error>>()?;
        let addresses = |region: Option<&Arc<Region>>| {
            let own = region.map(|r| &r.ranks[rank.index as usize]);
            Addresses {
                rank: rank.index,
                status: rank.control().status.address(),
                host_status: rank.control().mirror.own().address(),
                regions: own.iter().flat_map(|r| &r.reached).map(Mapping::address).collect(),
                epochs: own.map_or(0, |r| r.epochs.address()),
                generation_bytes: region.map_or(0, |r| r.layout.generation_bytes(r.slots)),
                timeout_ns: plan.timeout.as_nanos().try_into().unwrap_or(u64::MAX),
            }
        };
        let all: Vec<Addresses> = match regions.is_empty() {
            true => vec![addresses(None)],
            false => regions.iter().map(|region| addresses(Some(region))).collect(),
        };
        let packings = |v: &crate::Variant| {
            let slots = abi::slots(v.program());
            all.iter().map(|addresses| Packing::new(&slots, &plan.arguments, addresses)).collect()
        };
        let packings = plan.variants.iter().map(packings).collect();
        let Plan { agreement, variants, placement, lazy, .. } = &plan;
        let code = group.backend.compile(&Build { agreement, variants, placement, lazy: *lazy })?;
        Ok(Arc::new(Inner { rank: rank.clone(), plan, packings, regions, code }))
    }

    /// What the backend is handed of a launch, if the bundle fits.
    #[inline]
    pub(crate) fn admit<'a, 'b>(
        &'a self,
        tokens: usize,
        args: &'a mut ArgList<'b>,
    ) -> Result<Launch<'a, 'b>, ErrorKind> {
        let plan = &self.plan;
        if tokens > plan.max_tokens {
            return Err(ErrorKind::TooManyTokens { max_tokens: plan.max_tokens, got: tokens });
        }
        let present = check::structure(&plan.arguments, args, tokens)?;
        let found = plan.variants.iter().position(|v| v.present() == present);
        let variant_index = found.ok_or_else(|| ErrorKind::Variant {
            got: describe(plan.graph, present),
            prepared: plan.variants.iter().map(|v| v.describe(plan.graph)).collect::<Vec<_>>().join(", or "),
        })?;
        let control = self.rank.control();
        match control.fault() {
            Some(fault) => Err(ErrorKind::Fault(fault)),
            None => Ok(Launch {
                rank: self.rank.index,
                tokens: tokens as u64,
                tokens_per_kernel: plan.tokens_per_launch,
                variant_index,
                variant: &plan.variants[variant_index],
                arguments: &plan.arguments,
                args,
                packings: &self.packings[variant_index],
                control,
                regions: &self.regions,
            }),
        }
    }
}

impl<P: Pattern> Kernel<P> {
    /// Checks `args` and queues one launch.
    ///
    /// In a group every rank launches the same tokens, in the same order of launches; on a host executor with
    /// [`launch_all`](crate::launch_all). Threads that launch on one rank see to that order themselves. It neither
    /// compiles (unless `lazy`), allocates, waits nor takes a lock (but for a rank's first, which remembers its
    /// stream), and may be captured. With no tokens it checks `args` and queues nothing.
    ///
    /// Optional inputs may be present on some ranks and absent on others if they are used before the collective
    /// alone. `launch_all` refuses others; ranks that launch one by one must see to it themselves.
    ///
    /// # Weights are read early
    /// A GPU kernel begins before the one queued before it has ended, and reads its `Channels` at once: they are
    /// constant weights. They must not be what the kernel just before it writes; every other input may be.
    ///
    /// # Errors
    /// See [`ErrorKind`](crate::ErrorKind). Nothing was queued then, but see [`Error`] for a driver that fails.
    pub fn launch<'q>(&self, queue: impl Into<Queue<'q>>, args: P::Args<'_>) -> Result<(), Error> {
        launch::launch(&self.inner, queue.into(), args)
    }
}

impl<P> Kernel<P> {
    pub(crate) fn new(inner: Arc<Inner>) -> Kernel<P> {
        Kernel { inner, pattern: PhantomData }
    }

    /// The rank that it was prepared on.
    pub fn rank(&self) -> &Rank {
        &self.inner.rank
    }

    /// The most tokens of a launch.
    pub fn max_tokens(&self) -> usize {
        self.inner.plan.max_tokens
    }

    /// The variants that it was prepared for.
    pub fn variants(&self) -> &[crate::Variant] {
        &self.inner.plan.variants
    }

    /// Bytes of exchange memory that its rank holds for it. Kernels of one group with the same hidden size
    /// and wire dtype share it.
    pub fn exchange_bytes(&self) -> u64 {
        self.inner.regions.iter().map(|r| r.bytes_per_rank()).sum()
    }

    /// How `tokens` tokens are launched, and what that costs at least. More than [`max_tokens`](Kernel::max_tokens) are
    /// explained as that many.
    pub fn explain(&self, tokens: usize) -> Explanation {
        Explanation::of(&self.inner, tokens)
    }

    /// What its rank's kernels have noticed, without waiting for anything.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn status(&self) -> Result<Status, Error> {
        self.inner.rank.status()
    }

    /// Keeps alive what a captured graph uses of this kernel: its code and its exchange memory. The arguments
    /// are the caller's own.
    pub fn keep_alive(&self) -> KeepAlive {
        KeepAlive(Arc::clone(&self.inner) as Arc<dyn Any + Send + Sync>)
    }
}

/// See [`Kernel::keep_alive`].
#[derive(Clone)]
#[must_use = "what it keeps alive is freed when it is dropped"]
pub struct KeepAlive(#[expect(dead_code, reason = "held, never read")] Arc<dyn Any + Send + Sync>);

impl fmt::Debug for KeepAlive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeepAlive")
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { rank, plan, .. } = self;
        write!(f, "Kernel({}, {rank:?}, up to {} tokens)", plan.graph.name, plan.max_tokens)
    }
}

impl<P> Clone for Kernel<P> {
    fn clone(&self) -> Self {
        Kernel { inner: Arc::clone(&self.inner), pattern: PhantomData }
    }
}

impl<P> fmt::Debug for Kernel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
