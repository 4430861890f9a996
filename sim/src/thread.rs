//! What the simulator keeps for a CUDA thread, and what a thread asks of it.

use crate::cluster::WARP;
use crate::fiber::Switch;
use crate::host::{HOST, Host};
use crate::launch::{Access, Range};
use crate::mbarrier::Call;
use crate::polled::Polled;
use crate::races::{Passed, Shadow, Touch, Wrong};
use crate::world::World;
use std::cell::Cell;
use std::ffi::c_char;
use std::ptr::NonNull;

/// A line of the generated source. The name is a literal of the kernel's, alive as long as its library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct Place {
    pub file: *const c_char,
    pub line: u32,
}

/// The device layer's barriers. The numbers are its.
#[allow(dead_code, reason = "the device layer makes them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Barrier {
    Block,
    ClusterArriveRelaxed,
    ClusterArrive,
    ClusterWait,
    GridWait,
    GridLaunchDependents,
}

/// What a thread asks of the scheduler when it stops.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    Barrier(Barrier),
    Shuffle {
        bits: u32,
        /// The lane whose bits it wants.
        from: u32,
    },
    /// Until memory that it has seen empty ([`Context::polled`]) changes.
    Poll,
    /// Until the word at `address` is no longer `seen`.
    Word {
        address: u64,
        seen: u32,
    },
    /// Others may run in between, in a random order as long as they can.
    Pause,
    Shared {
        tag: u64,
        bytes: u64,
    },
    Mbarrier {
        call: Call,
        address: u64,
        /// The bytes expected, or the parity.
        operand: u32,
    },
    StoreAsync {
        address: u64,
        barrier: u64,
        rank: u32,
        bits: u32,
    },
    Fault(Broken),
}

/// A rule that a thread has broken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Broken {
    Memory { access: Access, address: u64, bytes: u32 },
    Misaligned { access: Access, address: u64, bytes: u32 },
    BeforeWait { access: Access, address: u64 },
    PushesEmpty { address: u64 },
    ArmsFull { address: u64 },
    Overwrites { address: u64 },
    Shared(&'static str, Wrong),
}

/// What all threads of a launch share.
#[derive(Debug)]
pub(crate) struct LaunchView {
    pub index: usize,
    pub memory: Vec<Range>,
    /// The launch before has ended: `grid_wait` returns at once.
    pub open: Cell<bool>,
}

/// A thread, at the top of its stack. The first fields are the device layer's `Thread`.
#[repr(C)]
pub(crate) struct Context {
    host: &'static Host,
    pub thread: u32,
    pub block: u32,
    blocks: u32,
    pub grid_row: u32,
    cluster_rank: u32,
    world: NonNull<World>,
    launch: NonNull<LaunchView>,
    pub switch: Cell<*const Switch>,
    /// What the scheduler answers to a request.
    pub answer: Cell<u64>,
    pub place: Cell<Place>,
    /// It is past `grid_wait`.
    pub waited: Cell<bool>,
    pub polled: Polled,
    /// The control word that was read last, and how often in a row with the same result.
    pub last: Cell<(u64, u32, u32)>,
    /// Looks that it may have without being stopped: time has passed, and it should come by its next look at the clock.
    pub granted: Cell<u32>,
    /// Counted through the cluster; so is its warp.
    index: u32,
    warp: u32,
    pub passed: Cell<Passed>,
    /// Its arrival at the cluster's barrier releases.
    pub releases: Cell<bool>,
    /// Of its block's shared memory, once it has declared some.
    pub shadow: Cell<*const Shadow>,
}

/// Where a thread is in its launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub thread: u32,
    pub block: u32,
    pub blocks: u32,
    pub grid_row: u32,
    pub cluster_rank: u32,
    /// Threads of a block.
    pub threads: u32,
}

impl Context {
    /// A thread that has not begun.
    ///
    /// # Safety
    /// `world` and `launch` stay where they are and outlive the thread's fiber.
    pub unsafe fn new(position: Position, world: &World, launch: &LaunchView) -> Context {
        let Position { thread, block, blocks, grid_row, cluster_rank, threads } = position;
        Context {
            host: &HOST,
            thread,
            block,
            blocks,
            grid_row,
            cluster_rank,
            world: NonNull::from(world),
            launch: NonNull::from(launch),
            switch: Cell::new(std::ptr::null()),
            answer: Cell::new(0),
            place: Cell::new(Place { file: std::ptr::null(), line: 0 }),
            waited: Cell::new(false),
            polled: Polled::default(),
            last: Cell::new((0, 0, 0)),
            granted: Cell::new(0),
            index: cluster_rank * threads + thread,
            warp: cluster_rank * threads.div_ceil(WARP as u32) + thread / WARP as u32,
            passed: Cell::default(),
            releases: Cell::new(false),
            shadow: Cell::new(std::ptr::null()),
        }
    }

    pub fn world(&self) -> &World {
        // SAFETY: it outlives the fiber; see `new`.
        unsafe { self.world.as_ref() }
    }

    pub fn launch(&self) -> &LaunchView {
        // SAFETY: it outlives the fiber; see `new`.
        unsafe { self.launch.as_ref() }
    }

    pub fn ask(&self, request: Request) {
        // SAFETY: the fiber set it before it called the kernel, and we are on that fiber.
        unsafe { (*self.switch.get()).suspend(request) }
    }

    /// Lets others run before an access to what ranks share, now and then.
    pub fn pause(&self) {
        if self.world().interleaves() {
            self.ask(Request::Pause);
        }
    }

    /// Stops for good: the scheduler ends the run.
    #[cold]
    pub fn broken(&self, rule: Broken) {
        loop {
            self.ask(Request::Fault(rule));
        }
    }

    #[inline]
    pub fn check(&self, access: Access, address: u64, bytes: u32, place: Place) {
        self.place.set(place);
        if !self.allows(access, address, bytes) {
            self.broken(Broken::Memory { access, address, bytes });
        }
        if !address.is_multiple_of(bytes.into()) {
            self.broken(Broken::Misaligned { access, address, bytes });
        }
        if !self.waited.get() && !self.may_precede_wait(access, address, bytes) {
            self.broken(Broken::BeforeWait { access, address });
        }
    }

    /// Whether an argument of the launch does.
    fn allows(&self, access: Access, address: u64, bytes: u32) -> bool {
        self.launch().memory.iter().any(|r| r.allows(access, address, bytes.into()))
    }

    fn may_precede_wait(&self, access: Access, address: u64, bytes: u32) -> bool {
        let memory = &self.launch().memory;
        memory
            .iter()
            .any(|r| r.usage == crate::AccessRole::Weights && r.allows(access, address, bytes.into()))
    }

    /// Whether the 16 bytes there are this rank's own slots.
    pub fn polls(&self, address: u64) -> bool {
        self.allows(Access::Poll, address, 16)
    }

    /// Whether it may itself have stored a row there.
    pub fn pushes_to(&self, address: u64) -> bool {
        self.allows(Access::Push, address, 16)
    }

    /// A touch of shared memory, now.
    pub fn touch(&self) -> Touch {
        Touch {
            thread: self.index,
            warp: self.warp,
            block: self.cluster_rank,
            passed: self.passed.get(),
            counted: false,
            place: self.place.get(),
        }
    }

    /// Checks a touch of its block's shared memory.
    pub fn touches(&self, verb: &'static str, touch: impl FnOnce(&Shadow, Touch) -> Result<(), Wrong>) {
        // SAFETY: null, or in a box of the cluster, which outlives its fibers.
        let shadow = unsafe { self.shadow.get().as_ref() };
        let result = shadow.map_or(Err(Wrong::Address), |shadow| touch(shadow, self.touch()));
        if let Err(wrong) = result {
            self.broken(Broken::Shared(verb, wrong));
        }
    }

    /// Whether a look that found nothing new is for free.
    pub fn is_granted(&self) -> bool {
        let granted = self.granted.get();
        self.granted.set(granted.saturating_sub(1));
        granted > 0
    }
}
