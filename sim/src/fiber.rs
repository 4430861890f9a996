//! Fibers: the switch between CUDA threads, each on a stack of its own.

use crate::stack::Slot;
use crate::thread::{Context, Request};
use corosensei::{Coroutine, CoroutineResult, Yielder};

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
    /// long as the fiber lives, was built for stacks of this size, and what `context` points to is alive.
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
