//! Stacks for fibers, and how large a kernel's must be.
//!
//! A kernel finds its [`Context`] by masking its stack pointer, so it is built for stacks of one size: the smallest that holds
//! its frames, which the compiler lists ([`frames`]), and the simulator's own functions.
//!
//! Tens of thousands of stacks are alive at once, so they are cut from a few large maps: one map per stack would exceed what
//! Linux lets a process have (`vm.max_map_count`, 65530). A guard page at the end of each costs maps too where the system
//! cannot put one inside a map, so it may run out of them. What keeps a stack from overflowing is that its size is proven.

mod frames;
mod guard;

pub(crate) use frames::Frames;

use crate::thread::Context;
use corosensei::stack::{Stack, StackPointer};
use memmap2::{MmapMut, MmapOptions};
use std::sync::Mutex;

/// Bytes of the smallest stack, and its alignment: what a common kernel gets.
pub(crate) const SMALLEST: usize = 64 << 10;
/// Bytes of the largest stack. Threads of a kernel that exchanges are alive together, and a thousand are one block.
pub(crate) const LARGEST: usize = 1 << 20;
/// Of these, bytes for the simulator's own functions, for a signal that comes meanwhile, and for the guard page.
const OWN_BYTES: usize = 32 << 10;
/// Bytes at the top of a stack for the thread's [`Context`].
pub(crate) const CONTEXT_BYTES: usize = 448;
/// The most that a kernel's frames may take together.
pub(crate) const MOST_FRAMES: usize = LARGEST - OWN_BYTES - CONTEXT_BYTES;
const CHUNK_BYTES: usize = 32 << 20;
/// What a fiber of a common kernel really touches: two pages of stack, and the simulator's own state.
const COMMON_RESIDENT: u64 = 10 << 10;

const _: () = assert!(size_of::<Context>() <= CONTEXT_BYTES);

/// The size of stack for a kernel whose frames take `frames` bytes, if there is one.
pub(crate) fn size_for(frames: u64) -> Option<usize> {
    let frames = usize::try_from(frames).ok().filter(|&bytes| bytes <= MOST_FRAMES)?;
    Some((frames + OWN_BYTES + CONTEXT_BYTES).next_power_of_two().max(SMALLEST))
}

/// A stack of an [`Arena`], which must outlive it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    start: StackPointer,
    bytes: usize,
}

impl Slot {
    /// Where the thread's context is.
    pub fn context(self) -> *mut Context {
        (self.start.get() + self.bytes - CONTEXT_BYTES) as *mut Context
    }
}

// SAFETY: an arena hands out each of its pieces (aligned to their size, so to STACK_ALIGNMENT) to one fiber at a time. The
// kernel that runs there was built for this size, which its frames fit; see the module's text.
unsafe impl Stack for Slot {
    fn base(&self) -> StackPointer {
        self.start.saturating_add(self.bytes - CONTEXT_BYTES)
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

/// The stacks of a run, whose kernels may need several sizes.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    arenas: Vec<Arena>,
}

impl Stacks {
    /// A free stack of `bytes` bytes.
    pub fn take(&mut self, bytes: usize) -> Result<Slot, OutOfMemory> {
        let known = self.arenas.iter().position(|arena| arena.bytes == bytes);
        let i = known.unwrap_or_else(|| {
            self.arenas.push(Arena::take(bytes));
            self.arenas.len() - 1
        });
        self.arenas[i].take_slot()
    }

    /// A stack that no fiber uses any more.
    pub fn give_back(&mut self, slot: Slot) {
        if let Some(arena) = self.arenas.iter_mut().find(|arena| arena.bytes == slot.bytes) {
            arena.free.push(slot);
        }
    }

    /// Keeps them for a later run. Every one must have come back.
    pub fn keep(self) {
        self.arenas.into_iter().for_each(Arena::give_back);
    }
}

/// Stacks of one size, and those that are free.
#[derive(Debug)]
struct Arena {
    bytes: usize,
    chunks: Vec<MmapMut>,
    /// The one that was used last is the one that is taken first: it is warm.
    free: Vec<Slot>,
}

/// Chunks of an idle arena whose pages stay; 16,384 common fibers.
const KEPT_CHUNKS: usize = 32;

/// Arenas that no run uses. Their pages stay, which saves a fault per page; those of a large run may be taken back.
static IDLE: Mutex<Vec<Arena>> = Mutex::new(Vec::new());

impl Arena {
    /// An arena that an earlier run has warmed, or a new one.
    fn take(bytes: usize) -> Arena {
        let mut idle = IDLE.lock().unwrap_or_else(|e| e.into_inner());
        match idle.iter().position(|arena| arena.bytes == bytes) {
            Some(i) => idle.swap_remove(i),
            None => Arena { bytes, chunks: Vec::new(), free: Vec::new() },
        }
    }

    fn give_back(self) {
        if self.free.len() == self.fibers() {
            for chunk in self.chunks.iter().skip(KEPT_CHUNKS) {
                // SAFETY: every slot is free: nobody minds that its memory may turn to zeros. Only a hint: failing is fine.
                #[cfg(unix)]
                let _ = unsafe { chunk.unchecked_advise(memmap2::UncheckedAdvice::Free) };
            }
            IDLE.lock().unwrap_or_else(|e| e.into_inner()).push(self);
        }
    }

    fn take_slot(&mut self) -> Result<Slot, OutOfMemory> {
        if self.free.is_empty() {
            self.grow()?;
        }
        self.free.pop().ok_or(OutOfMemory { fibers: self.fibers(), available: 0 })
    }

    fn per_chunk(&self) -> usize {
        CHUNK_BYTES / self.bytes
    }

    fn fibers(&self) -> usize {
        self.chunks.len() * self.per_chunk()
    }

    /// What a fiber touches: one that was given more stack may use half of it.
    fn resident(&self) -> u64 {
        if self.bytes == SMALLEST { COMMON_RESIDENT } else { self.bytes as u64 / 2 }
    }

    fn grow(&mut self) -> Result<(), OutOfMemory> {
        let available = available_memory();
        let failed = OutOfMemory { fibers: self.fibers(), available };
        if available < self.per_chunk() as u64 * self.resident() * 2 {
            return Err(failed);
        }
        let length = CHUNK_BYTES + self.bytes;
        let Ok(chunk) = MmapOptions::new().len(length).no_reserve_swap().map_anon() else {
            return Err(failed);
        };
        // A huge page would hold the stacks of 32 threads, which use an eighth of it. Only a hint: failing is fine.
        #[cfg(target_os = "linux")]
        let _ = chunk.advise(memmap2::Advice::NoHugePage);
        let bytes = self.bytes;
        let first = (chunk.as_ptr() as usize).next_multiple_of(bytes);
        self.chunks.push(chunk);
        let starts = (0..self.per_chunk()).rev().map(|i| first + i * bytes);
        self.free.extend(starts.filter_map(StackPointer::new).map(|start| {
            // SAFETY: the stack is in the chunk that was just mapped, and nobody has it.
            unsafe { guard::install(start.get()) };
            Slot { start, bytes }
        }));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_holds_the_frames_and_what_the_simulator_needs() {
        assert_eq!(size_for(0), Some(SMALLEST));
        for frames in [100, 20_000, 32_000, 33_000, 500_000, MOST_FRAMES] {
            let bytes = size_for(frames as u64).unwrap();
            assert!(
                bytes.is_power_of_two() && bytes - frames >= OWN_BYTES + CONTEXT_BYTES,
                "{frames}: {bytes}"
            );
        }
        assert_eq!(size_for(MOST_FRAMES as u64), Some(LARGEST));
        assert_eq!((size_for(MOST_FRAMES as u64 + 1), size_for(u64::MAX)), (None, None));
    }

    #[test]
    fn stacks_of_each_size_are_apart_and_come_back() {
        let mut stacks = Stacks::default();
        let slots = [SMALLEST, LARGEST, SMALLEST].map(|bytes| stacks.take(bytes).unwrap());
        for (i, a) in slots.iter().enumerate() {
            assert!(a.start.get().is_multiple_of(a.bytes));
            for b in &slots[..i] {
                let (a, b) = (a.start.get()..a.start.get() + a.bytes, b.start.get()..b.start.get() + b.bytes);
                assert!(a.end <= b.start || b.end <= a.start, "{a:?} and {b:?}");
            }
        }
        slots.into_iter().for_each(|slot| stacks.give_back(slot));
        assert!(stacks.arenas.iter().all(|arena| arena.free.len() == arena.fibers()));
        assert_eq!(stacks.take(LARGEST).unwrap().start, slots[1].start);
    }
}
