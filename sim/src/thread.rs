//! What a CUDA thread sees of the simulator: its context, and the functions that the device layer calls.
//!
//! These functions run on the thread's own small stack. They decide what they can from shared state and cells; for all
//! else they hand a [`Request`] to the scheduler. They own nothing while suspended: a fiber may be dropped there.

use crate::fiber::{CONTEXT_BYTES, Switch};
use crate::launch::{Access, Range};
use crate::world::World;
use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::ptr::NonNull;

/// A word of exchange memory that nobody has written yet.
pub(crate) const EMPTY: u32 = u32::MAX;

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
        mask: u32,
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
    StoreCluster {
        address: u64,
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
    last: Cell<(u64, u32, u32)>,
    /// Looks that it may have without being stopped: time has passed, and it should come by its next look at the clock.
    pub granted: Cell<u32>,
}

/// Where a thread has found empty words. The address of four words is a multiple of 16; its low bits count the empty ones.
#[derive(Default)]
pub(crate) struct Polled {
    places: [Cell<u64>; Polled::CAPACITY],
    next: Cell<usize>,
}

impl Polled {
    /// More than one round of polls of eight ranks' rows in f32.
    const CAPACITY: usize = 20;

    /// Notes that `empty` words at `address` are empty; answers whether that was known.
    fn note(&self, address: u64, empty: usize) -> bool {
        let place = address | empty as u64;
        if self.places.iter().any(|p| p.get() == place) {
            return true;
        }
        let next = self.next.get();
        self.places[next].set(place);
        self.next.set((next + 1) % Polled::CAPACITY);
        false
    }

    pub fn clear(&self) {
        self.places.iter().for_each(|p| p.set(0));
        self.next.set(0);
    }

    /// The address that was noted first since the last `clear`, or one of the others if they are many.
    pub fn first(&self) -> u64 {
        self.places[0].get() & !15
    }

    /// Whether memory is no longer as it was noted.
    pub fn changed(&self) -> bool {
        let noted = self.places.iter().map(Cell::get).take_while(|&p| p != 0);
        // SAFETY: the thread was allowed to read there, and a launch's memory outlives the run.
        noted.into_iter().any(|p| empty_words(unsafe { read(p & !15) }) as u64 != p & 15)
    }
}

const _: () = assert!(size_of::<Context>() <= CONTEXT_BYTES);

/// Times that a thread may read a control word, with nothing between, before it is taken to wait for it to change.
const PATIENCE: u32 = 16;

/// Where a thread is in its launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub thread: u32,
    pub block: u32,
    pub blocks: u32,
    pub grid_row: u32,
    pub cluster_rank: u32,
}

impl Context {
    /// What `world` and `launch` point to must outlive the fiber.
    pub fn new(position: Position, world: &World, launch: &LaunchView) -> Context {
        let Position { thread, block, blocks, grid_row, cluster_rank } = position;
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
        }
    }

    fn world(&self) -> &World {
        // SAFETY: the machine, which owns the fibers, borrows the world for longer than they live.
        unsafe { self.world.as_ref() }
    }

    pub fn launch(&self) -> &LaunchView {
        // SAFETY: as above; launches are boxed and never moved.
        unsafe { self.launch.as_ref() }
    }

    fn ask(&self, request: Request) {
        // SAFETY: the fiber set it before it called the kernel, and we are on that fiber.
        unsafe { (*self.switch.get()).suspend(request) }
    }

    /// Lets others run before an access to what ranks share, now and then.
    fn pause(&self) {
        if self.world().interleaves() {
            self.ask(Request::Pause);
        }
    }

    /// Stops for good: the scheduler ends the run.
    #[cold]
    fn broken(&self, rule: Broken) {
        loop {
            self.ask(Request::Fault(rule));
        }
    }

    #[inline]
    fn check(&self, access: Access, address: u64, bytes: u32, place: Place) {
        self.place.set(place);
        let memory = &self.launch().memory;
        if !memory.iter().any(|r| r.allows(access, address, bytes.into())) {
            self.broken(Broken::Memory { access, address, bytes });
        }
        if !address.is_multiple_of(bytes.into()) {
            self.broken(Broken::Misaligned { access, address, bytes });
        }
        if !self.waited.get() && !self.may_precede_wait(access, address, bytes) {
            self.broken(Broken::BeforeWait { access, address });
        }
    }

    fn may_precede_wait(&self, access: Access, address: u64, bytes: u32) -> bool {
        let memory = &self.launch().memory;
        memory.iter().any(|r| r.usage == crate::Usage::Weights && r.allows(access, address, bytes.into()))
    }

    /// Whether it may itself have stored a row there.
    fn pushes_to(&self, address: u64) -> bool {
        self.launch().memory.iter().any(|r| r.allows(Access::Push, address, 16))
    }

    /// Whether a look that found nothing new is for free.
    fn is_granted(&self) -> bool {
        let granted = self.granted.get();
        self.granted.set(granted.saturating_sub(1));
        granted > 0
    }
}

/// The table of functions that the device layer calls; its `Host`.
#[repr(C)]
pub(crate) struct Host {
    access: extern "C" fn(&Context, Access, *const c_void, u32, Place),
    exchange_load: extern "C" fn(&Context, *const c_void, &mut [u32; 4], Place),
    exchange_store: extern "C" fn(&Context, Access, *mut c_void, &[u32; 4], Place),
    control_load: extern "C" fn(&Context, *const u32, Place) -> u32,
    barrier: extern "C" fn(&Context, Barrier, Place),
    shuffle_xor: extern "C" fn(&Context, u32, u32, Place) -> u32,
    shared: extern "C" fn(&Context, *const c_void, u64, Place) -> *mut c_void,
    store_cluster: extern "C" fn(&Context, *mut f32, u32, f32, Place),
    clock_ns: extern "C" fn(&Context) -> u64,
}

pub(crate) static HOST: Host = Host {
    access,
    exchange_load,
    exchange_store,
    control_load,
    barrier,
    shuffle_xor,
    shared,
    store_cluster,
    clock_ns,
};

extern "C" fn access(thread: &Context, access: Access, at: *const c_void, bytes: u32, place: Place) {
    thread.check(access, at as u64, bytes, place);
    if access == Access::ControlStore {
        thread.pause();
    }
}

extern "C" fn exchange_load(thread: &Context, at: *const c_void, words: &mut [u32; 4], place: Place) {
    let address = at as u64;
    thread.check(Access::Poll, address, 16, place);
    thread.pause();
    if let Some(delivery) = thread.world().delivery.as_ref().filter(|_| thread.pushes_to(address)) {
        delivery.settle(address);
    }
    // SAFETY: checked: 16 aligned bytes of this rank's exchange memory.
    *words = unsafe { read(address) };
    thread.last.set((0, 0, 0));
    let empty = empty_words(*words);
    // What is seen twice is polled: a row that the kernel can do without is looked at once.
    if empty > 0 && thread.polled.note(address, empty) && !thread.is_granted() {
        thread.ask(Request::Poll);
        thread.polled.clear();
        // SAFETY: as above.
        *words = unsafe { read(address) };
    }
}

extern "C" fn exchange_store(
    thread: &Context,
    access: Access,
    at: *mut c_void,
    words: &[u32; 4],
    place: Place,
) {
    let address = at as u64;
    thread.check(access, address, 16, place);
    thread.pause();
    let empty = empty_words(*words);
    match access {
        Access::Arm if empty < 4 => thread.broken(Broken::ArmsFull { address }),
        Access::Push if empty > 0 => thread.broken(Broken::PushesEmpty { address }),
        // SAFETY: checked: 16 aligned bytes of exchange memory.
        Access::Push if unsafe { read(address) } != [EMPTY; 4] => {
            thread.broken(Broken::Overwrites { address })
        }
        _ => {}
    }
    match &thread.world().delivery {
        // SAFETY: checked, as above; the machine calls `arrive` at the end of each launch.
        Some(delivery) => unsafe { delivery.store(thread.launch().index, address, words) },
        // SAFETY: as above.
        None => (0..4).for_each(|i| unsafe { (address as *mut u32).add(i).write_volatile(words[i]) }),
    }
}

extern "C" fn control_load(thread: &Context, at: *const u32, place: Place) -> u32 {
    let address = at as u64;
    thread.check(Access::ControlLoad, address, 4, place);
    thread.pause();
    // SAFETY: checked: an aligned control word.
    let value = unsafe { at.read_volatile() };
    let repeated = match thread.last.get() {
        (last, seen, times) if (last, seen) == (address, value) => times + 1,
        _ => 0,
    };
    thread.last.set((address, value, repeated));
    if repeated < PATIENCE || thread.is_granted() {
        return value;
    }
    thread.ask(Request::Word { address, seen: value });
    // SAFETY: as above.
    unsafe { at.read_volatile() }
}

extern "C" fn barrier(thread: &Context, barrier: Barrier, place: Place) {
    thread.place.set(place);
    if barrier == Barrier::GridWait && thread.launch().open.get() {
        thread.waited.set(true);
        return;
    }
    thread.ask(Request::Barrier(barrier));
    if barrier == Barrier::GridWait {
        thread.waited.set(true);
    }
}

extern "C" fn shuffle_xor(thread: &Context, bits: u32, mask: u32, place: Place) -> u32 {
    thread.place.set(place);
    thread.ask(Request::Shuffle { bits, mask });
    thread.answer.get() as u32
}

extern "C" fn shared(thread: &Context, tag: *const c_void, bytes: u64, place: Place) -> *mut c_void {
    thread.place.set(place);
    thread.ask(Request::Shared { tag: tag as u64, bytes });
    thread.answer.get() as *mut c_void
}

extern "C" fn store_cluster(thread: &Context, at: *mut f32, rank: u32, value: f32, place: Place) {
    thread.place.set(place);
    thread.ask(Request::StoreCluster { address: at as u64, rank, bits: value.to_bits() });
}

extern "C" fn clock_ns(thread: &Context) -> u64 {
    thread.granted.set(0);
    thread.world().read_clock()
}

pub(crate) fn empty_words(words: [u32; 4]) -> usize {
    words.into_iter().filter(|&w| w == EMPTY).count()
}

/// The four words at `address`, as another thread may be writing them.
///
/// # Safety
/// 16 readable bytes are there, aligned to 4.
pub(crate) unsafe fn read(address: u64) -> [u32; 4] {
    let at = address as *const u32;
    // SAFETY: the caller's.
    std::array::from_fn(|i| unsafe { at.add(i).read_volatile() })
}
