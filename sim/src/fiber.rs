//! Fibers: a stack for each CUDA thread, and the switch between them.
//!
//! Tens of thousands are alive at once, so their stacks are cut from a few large maps: one map per stack would exceed
//! what Linux lets a process have (`vm.max_map_count`, 65530). That leaves no room for guard pages. Instead a kernel is
//! compiled with a limit on its frame (`-Werror=frame-larger-than`), and it cannot recurse.

use crate::thread::{Context, Request};
use corosensei::stack::{Stack, StackPointer};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use memmap2::{MmapMut, MmapOptions};
use std::sync::Mutex;

/// Bytes of a stack, and its alignment: a kernel finds its [`Context`] by masking its stack pointer.
pub(crate) const STACK_BYTES: usize = 32 << 10;
/// The most that a kernel's frame may take; the rest is for the simulator's own functions.
pub(crate) const FRAME_BYTES: usize = 20 << 10;
/// Bytes at the top of a stack for the thread's [`Context`].
pub(crate) const CONTEXT_BYTES: usize = 448;
const STACKS_PER_CHUNK: usize = 512;
/// What a fiber of a common kernel really touches: two pages of stack, and the simulator's own state.
const RESIDENT_BYTES: u64 = 10 << 10;

/// A stack of an [`Arena`], which must outlive it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    start: StackPointer,
}

impl Slot {
    /// Where the thread's context is.
    pub fn context(self) -> *mut Context {
        (self.start.get() + STACK_BYTES - CONTEXT_BYTES) as *mut Context
    }
}

// SAFETY: an arena hands out each piece of STACK_BYTES (aligned to it, so to STACK_ALIGNMENT) to one fiber at a time. In
// place of a guard page, the compiler has proven that no kernel's frame exceeds FRAME_BYTES; see the module's text.
unsafe impl Stack for Slot {
    fn base(&self) -> StackPointer {
        self.start.saturating_add(STACK_BYTES - CONTEXT_BYTES)
    }

    fn limit(&self) -> StackPointer {
        self.start
    }
}

/// There is no memory for another fiber.
#[derive(Debug)]
pub(crate) struct OutOfMemory {
    pub fibers: usize,
    pub available: u64,
}

/// Stacks, and those that are free.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    chunks: Vec<MmapMut>,
    /// The one that was used last is the one that is taken first: it is warm.
    free: Vec<Slot>,
}

/// Chunks of an idle arena whose pages stay; 16,384 fibers.
const KEPT_CHUNKS: usize = 32;

/// Arenas that no run uses. Their pages stay, which saves a fault per page; those of a large run may be taken back.
static IDLE: Mutex<Vec<Arena>> = Mutex::new(Vec::new());

impl Arena {
    /// An arena that an earlier run has warmed, or a new one.
    pub fn take() -> Arena {
        let idle = IDLE.lock().unwrap_or_else(|e| e.into_inner()).pop();
        idle.unwrap_or_default()
    }

    /// Keeps the arena for a later run. Every slot must have come back.
    pub fn give_back(self) {
        if self.free.len() == self.chunks.len() * STACKS_PER_CHUNK {
            for chunk in self.chunks.iter().skip(KEPT_CHUNKS) {
                // SAFETY: every slot is free: nobody minds that its memory may turn to zeros. Only a hint: failing is fine.
                #[cfg(unix)]
                let _ = unsafe { chunk.unchecked_advise(memmap2::UncheckedAdvice::Free) };
            }
            IDLE.lock().unwrap_or_else(|e| e.into_inner()).push(self);
        }
    }

    pub fn take_slot(&mut self) -> Result<Slot, OutOfMemory> {
        if self.free.is_empty() {
            self.grow()?;
        }
        self.free.pop().ok_or(OutOfMemory { fibers: self.fibers(), available: 0 })
    }

    pub fn return_slot(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    fn fibers(&self) -> usize {
        self.chunks.len() * STACKS_PER_CHUNK
    }

    fn grow(&mut self) -> Result<(), OutOfMemory> {
        let available = available_memory();
        let failed = OutOfMemory { fibers: self.fibers(), available };
        if available < STACKS_PER_CHUNK as u64 * RESIDENT_BYTES * 2 {
            return Err(failed);
        }
        let bytes = (STACKS_PER_CHUNK + 1) * STACK_BYTES;
        let Ok(chunk) = MmapOptions::new().len(bytes).no_reserve_swap().map_anon() else {
            return Err(failed);
        };
        // A huge page would hold the stacks of 64 threads, which use an eighth of it. Only a hint: failing is fine.
        #[cfg(target_os = "linux")]
        let _ = chunk.advise(memmap2::Advice::NoHugePage);
        let first = (chunk.as_ptr() as usize).next_multiple_of(STACK_BYTES);
        self.chunks.push(chunk);
        let starts = (0..STACKS_PER_CHUNK).rev().map(|i| first + i * STACK_BYTES);
        self.free.extend(starts.filter_map(StackPointer::new).map(|start| Slot { start }));
        Ok(())
    }
}

/// Bytes that can be had without swapping, where the system says so.
fn available_memory() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|l| l.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib << 10)
}

/// A CUDA thread.
pub(crate) struct Fiber {
    coroutine: Coroutine<(), Request, (), Slot>,
    slot: Slot,
}

/// How a fiber calls the scheduler.
pub(crate) type Switch = Yielder<(), Request>;

impl Fiber {
    /// A fiber on `slot` that will call `entry(args)`.
    ///
    /// # Safety
    /// `slot` comes from an arena that outlives the fiber and no other fiber has it. `entry` may be called with `args` for as
    /// long as the fiber lives, on a stack of [`FRAME_BYTES`], while what `context` points to is alive.
    pub unsafe fn spawn(
        slot: Slot,
        context: Context,
        entry: unsafe extern "C" fn(*const u64),
        args: *const u64,
    ) -> Fiber {
        let at = slot.context();
        // SAFETY: the slot's top is memory for a Context, which nobody else has.
        unsafe { at.write(context) };
        let coroutine = Coroutine::with_stack(slot, move |switch: &Switch, ()| {
            // SAFETY: `at` was just written and lives as long as the fiber. Only this thread of the machine touches it.
            unsafe { (*at).switch.set(switch) };
            // SAFETY: the caller vouches for the entry and its arguments.
            unsafe { entry(args) };
        });
        Fiber { coroutine, slot }
    }

    /// Runs it until it asks for something; `None` once it has ended.
    pub fn resume(&mut self) -> Option<Request> {
        match self.coroutine.resume(()) {
            CoroutineResult::Yield(request) => Some(request),
            CoroutineResult::Return(()) => None,
        }
    }

    pub fn context(&self) -> &Context {
        // SAFETY: written by `spawn`; from then on only shared references exist, and what changes is in cells.
        unsafe { &*self.slot.context() }
    }

    pub fn slot(&self) -> Slot {
        self.slot
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        if self.coroutine.started() && !self.coroutine.done() {
            // SAFETY: what lies on the stack is a kernel's frame, plain C++ without destructors, and below it a callback that
            // owns nothing. Nothing is lost by never running on.
            unsafe { self.coroutine.force_reset() };
        }
    }
}
