//! Groups of ranks, and a rank as its user holds it.

pub(crate) mod agreement;
mod fork;
pub(crate) mod memory;
pub(crate) mod region;
pub(crate) mod rendezvous;
pub(crate) mod status;

#[cfg(feature = "cuda")]
use crate::cuda::CudaGroup;
use crate::error::{Error, ErrorKind};
use crate::group::fork::{Family, Forks};
use crate::group::memory::{HostWords, Memory};
use crate::group::region::{Region, RegionKey};
use crate::group::rendezvous::Rendezvous;
use crate::group::status::{Fault, Status};
use crate::host::HostGroup;
use crate::host::executor::Executor;
use crate::host::reference::Reference;
use crate::plan::site::Place;
use crate::sync::lock;
use seamline_codegen::abi::STATUS_WORDS;
use seamline_codegen::schedule::DeviceModel;
use seamline_codegen::{MAX_RANKS, Program};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// Who runs a collective together. Makes [`Rank`]s; a group lives as long as one of them, or a kernel, does.
///
/// Exchange memory and machine code belong to the group and stay until it ends, whatever becomes of the kernels
/// they were made for; code stays for its [forks](Rank::fork) too. On a GPU a group ends by waiting for all that is
/// queued in its context: drop its last rank and kernel when every rank's part of the launches is queued, of this group
/// and of those that it shares the device with, and not during a capture.
#[derive(Debug)]
pub struct Group;

impl Group {
    /// One rank on one GPU: collectives cost nothing.
    ///
    /// # Errors
    /// A GPU that is too old, or a driver that fails.
    #[cfg(feature = "cuda")]
    pub fn single(context: &Arc<cudarc::driver::CudaContext>) -> Result<Rank, Error> {
        Ok(Group::loopback(context, 1)?.remove(0))
    }

    /// `ranks` ranks on one GPU, which exchange through its memory: for development and tests. Each needs a
    /// stream of its own.
    ///
    /// Streams share the device's hardware queues, of which a process has 8 unless
    /// `CUDA_DEVICE_MAX_CONNECTIONS` says otherwise (up to 32) before its first CUDA call. Of two ranks on one
    /// queue, one may wait in vain for the other: set it when the process has more streams than that.
    ///
    /// # Errors
    /// A GPU that is too old, a driver that fails, or more ranks than a group can have.
    #[cfg(feature = "cuda")]
    pub fn loopback(context: &Arc<cudarc::driver::CudaContext>, ranks: u32) -> Result<Vec<Rank>, Error> {
        size(ranks)?;
        make(Backend::Cuda(CudaGroup::new(context, ranks)?), ranks)
    }

    /// `ranks` ranks that the reference interpreter runs, bit for bit as the contract says.
    ///
    /// # Errors
    /// More ranks than a group can have.
    pub fn reference(ranks: u32) -> Result<Vec<Rank>, Error> {
        Group::with_executor(Arc::new(Reference), ranks)
    }

    /// `ranks` ranks that `executor` runs.
    ///
    /// # Errors
    /// More ranks than a group can have.
    pub fn with_executor(executor: Arc<dyn Executor>, ranks: u32) -> Result<Vec<Rank>, Error> {
        size(ranks)?;
        make(Backend::Host(HostGroup::new(executor)), ranks)
    }
}

/// Whether a group can have so many ranks: asked before anything is made for each.
fn size(ranks: u32) -> Result<(), ErrorKind> {
    match (1..=MAX_RANKS).contains(&ranks) {
        true => Ok(()),
        false => Err(ErrorKind::GroupSize { got: ranks, max: MAX_RANKS }),
    }
}

fn make(backend: Backend, ranks: u32) -> Result<Vec<Rank>, Error> {
    let group = State::new(backend, ranks, Arc::default())?;
    Ok((0..ranks).map(|index| Rank { group: Arc::clone(&group), index }).collect())
}

/// A group.
pub(crate) struct State {
    pub(crate) backend: Backend,
    /// By rank.
    pub(crate) controls: Vec<Control>,
    regions: Mutex<HashMap<RegionKey, Arc<Region>>>,
    pub(crate) rendezvous: Rendezvous,
    pub(crate) family: Arc<Family>,
    pub(crate) forks: Forks,
}

/// What runs its kernels.
#[derive(Debug)]
pub(crate) enum Backend {
    Host(HostGroup),
    #[cfg(feature = "cuda")]
    Cuda(CudaGroup),
}

impl Backend {
    /// For another group of as many ranks in the same places, with the same code.
    fn fork(&self) -> Backend {
        match self {
            Backend::Host(host) => Backend::Host(host.fork()),
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => Backend::Cuda(cuda.fork()),
        }
    }

    fn allocate(&self, words: u64, fill: u32) -> Result<Memory, Error> {
        match self {
            Backend::Host(_) => Ok(Memory::Host(HostWords::new(words, fill)?)),
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => cuda.allocate(words, fill),
        }
    }
}

/// A rank's control words, and their mirror that the host reads.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) status: Memory,
    pub(crate) mirror: Memory,
}

impl Control {
    fn new(backend: &Backend) -> Result<Control, Error> {
        let words = STATUS_WORDS as u64;
        let mirror = match backend {
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => cuda.allocate_pinned(words)?,
            Backend::Host(_) => backend.allocate(words, 0)?,
        };
        Ok(Control { status: backend.allocate(words, 0)?, mirror })
    }

    /// Reads the mirror: one load where all is well.
    #[inline]
    pub(crate) fn fault(&self) -> Option<Fault> {
        let words = self.mirror.words()?;
        // The kernel releases the flag after the other words.
        if words[0].load(Ordering::Acquire) == 0 {
            return None;
        }
        let word = |i: usize| words[i].load(Ordering::Relaxed);
        Some(Fault { rank: word(1), peer: word(2), slot: word(3), epoch: word(4) })
    }
}

impl State {
    fn new(backend: Backend, ranks: u32, family: Arc<Family>) -> Result<Arc<State>, Error> {
        Ok(Arc::new(State {
            controls: (0..ranks).map(|_| Control::new(&backend)).collect::<Result<_, Error>>()?,
            backend,
            regions: Mutex::new(HashMap::new()),
            rendezvous: Rendezvous::new(ranks),
            family,
            forks: Forks::new(ranks),
        }))
    }

    /// A group of the same family, with nothing in it yet.
    pub(crate) fn fork(&self) -> Result<Arc<State>, Error> {
        State::new(self.backend.fork(), self.size(), Arc::clone(&self.family))
    }

    pub(crate) fn size(&self) -> u32 {
        self.controls.len() as u32
    }

    /// The region with this layout, made by the first kernel that needs it.
    pub(crate) fn region(&self, program: &Program, key: &RegionKey) -> Result<Arc<Region>, Error> {
        let mut regions = lock(&self.regions);
        if let Some(region) = regions.get(key) {
            return Ok(Arc::clone(region));
        }
        let region =
            Arc::new(Region::new(program, key, |_, words, fill| self.backend.allocate(words, fill))?);
        regions.insert(*key, Arc::clone(&region));
        Ok(region)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group of {} on {:?}", self.size(), self.backend)
    }
}

/// One member of a group: what kernels are prepared on.
#[derive(Clone)]
pub struct Rank {
    pub(crate) group: Arc<State>,
    pub(crate) index: u32,
}

impl Rank {
    /// Its index in the group, from 0.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// N, the size of the group.
    pub fn ranks(&self) -> u32 {
        self.group.size()
    }

    /// What runs its kernels: `cuda`, `sim` or `reference`.
    pub fn executor(&self) -> &'static str {
        match &self.group.backend {
            Backend::Host(host) => host.executor().name(),
            #[cfg(feature = "cuda")]
            Backend::Cuda(_) => "cuda",
        }
    }

    /// The device for which its launches are shaped.
    pub fn device(&self) -> DeviceModel {
        match &self.group.backend {
            Backend::Host(host) => host.executor().device(),
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => cuda.model(),
        }
    }

    /// The context that its memory and streams belong to; `None` on the host.
    #[cfg(feature = "cuda")]
    pub fn context(&self) -> Option<&Arc<cudarc::driver::CudaContext>> {
        match &self.group.backend {
            Backend::Host(_) => None,
            Backend::Cuda(cuda) => Some(cuda.context()),
        }
    }

    /// What its kernels have noticed. Does not wait for them, nor for anything queued on their streams.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn status(&self) -> Result<Status, Error> {
        let out_of_range = match &self.group.backend {
            Backend::Host(_) => {
                self.control().status.words().map_or(0, |w| w[STATUS_WORDS - 1].load(Ordering::Relaxed))
            }
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => cuda.peek(&self.control().status, STATUS_WORDS - 1)?,
        };
        Ok(Status { fault: self.control().fault(), out_of_range: out_of_range.into() })
    }

    /// Continues on `stream`: what this rank has queued on the stream it was on comes before what it will
    /// queue there.
    ///
    /// # Errors
    /// A stream of another context, or a driver that fails.
    #[cfg(feature = "cuda")]
    pub fn move_to<'q>(&self, stream: impl Into<crate::Queue<'q>>) -> Result<(), Error> {
        match &self.group.backend {
            Backend::Host(_) => Ok(()),
            Backend::Cuda(cuda) => cuda.move_to(self.index, stream.into()),
        }
    }

    pub(crate) fn control(&self) -> &Control {
        &self.group.controls[self.index as usize]
    }

    /// What a plan is told of it.
    pub(crate) fn place(&self) -> Place {
        Place {
            device: self.device(),
            ranks: self.ranks(),
            ranks_per_device: self.ranks_per_device(),
            exchanges_through_memory: self.exchanges_through_memory(),
        }
    }

    fn ranks_per_device(&self) -> u32 {
        match &self.group.backend {
            Backend::Host(_) => 1,
            #[cfg(feature = "cuda")]
            Backend::Cuda(_) => self.ranks(),
        }
    }

    fn exchanges_through_memory(&self) -> bool {
        match &self.group.backend {
            Backend::Host(host) => host.executor().exchanges_through_memory(),
            #[cfg(feature = "cuda")]
            Backend::Cuda(_) => true,
        }
    }
}

impl fmt::Debug for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rank({} of {} on {})", self.index, self.ranks(), self.executor())
    }
}

/// Whether `ranks` are all ranks of one group, in order.
pub(crate) fn whole_group<'a>(
    what: (&'static str, &'static str),
    ranks: impl ExactSizeIterator<Item = &'a Rank> + Clone,
) -> Result<(), Error> {
    let Some(first) = ranks.clone().next() else {
        return Err(ErrorKind::Count { what: what.1, expected: 1, got: 0 }.into());
    };
    if ranks.len() != first.ranks() as usize {
        return Err(
            ErrorKind::Count { what: what.1, expected: first.ranks() as usize, got: ranks.len() }.into()
        );
    }
    for (at, rank) in ranks.enumerate() {
        let same = Arc::ptr_eq(&rank.group, &first.group);
        if !same || rank.index as usize != at {
            let got_group = if same { "the same group" } else { "another group" };
            return Err(ErrorKind::OtherGroup { what: what.0, at, got_rank: rank.index, got_group }.into());
        }
    }
    Ok(())
}

/// Makes a group usable again after a [`Fault`], as if it were new. `ranks` are all its ranks, in order. Its forks, and
/// the group that it is a fork of, are as they were.
///
/// Waits until the device has ended all that is queued, by whichever group.
///
/// # Errors
/// Not all ranks of one group, or a driver that fails.
pub fn reset(ranks: &[Rank]) -> Result<(), Error> {
    whole_group(("rank", "ranks"), ranks.iter())?;
    let group = &ranks[0].group;
    let _idle = match &group.backend {
        Backend::Host(host) => Some(lock(&host.running)),
        #[cfg(feature = "cuda")]
        Backend::Cuda(cuda) => {
            cuda.synchronize()?;
            None
        }
    };
    for region in lock(&group.regions).values() {
        region.reset()?;
    }
    for control in &group.controls {
        control.status.fill(0)?;
        control.mirror.fill(0)?;
    }
    Ok(())
}
