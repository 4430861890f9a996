//! The functions that the device layer calls.
//!
//! They run on the thread's own small stack. They decide what they can from shared state and cells; for all else they hand
//! a [`Request`] to the machine. They own nothing while suspended: a fiber may be dropped there.

use crate::launch::Access;
use crate::mbarrier::Call;
use crate::polled::{EMPTY, empty_words, read};
use crate::races::Passed;
use crate::thread::{Barrier, Broken, Context, Place, Request};
use std::ffi::c_void;

/// Times that a thread may read a control word, with nothing between, before it is taken to wait for it to change.
const PATIENCE: u32 = 16;

/// The table of functions that the device layer calls; its `Host`.
#[repr(C)]
pub(crate) struct Host {
    access: extern "C" fn(&Context, Access, *const c_void, u32, Place),
    exchange_load: extern "C" fn(&Context, *const c_void, &mut [u32; 4], Place),
    exchange_store: extern "C" fn(&Context, Access, *mut c_void, &[u32; 4], Place),
    control_load: extern "C" fn(&Context, *const u32, Place) -> u32,
    barrier: extern "C" fn(&Context, Barrier, Place),
    shuffle: extern "C" fn(&Context, u32, u32, Place) -> u32,
    shared: extern "C" fn(&Context, *const c_void, u64, Place) -> *mut c_void,
    load_shared: extern "C" fn(&Context, *const f32, Place) -> f32,
    store_shared: extern "C" fn(&Context, *mut f32, f32, Place),
    mbarrier: extern "C" fn(&Context, Call, *mut u64, u32, Place),
    store_async: extern "C" fn(&Context, *mut f32, *mut u64, u32, f32, Place),
    clock_ns: extern "C" fn(&Context) -> u64,
}

pub(crate) static HOST: Host = Host {
    access,
    exchange_load,
    exchange_store,
    control_load,
    barrier,
    shuffle,
    shared,
    load_shared,
    store_shared,
    mbarrier,
    store_async,
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
        // A rank's row in its own slots is read by the thread that writes it, whatever was there.
        // SAFETY: checked: 16 aligned bytes of exchange memory.
        Access::Push if unsafe { read(address) } != [EMPTY; 4] && !thread.polls(address) => {
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
    let mut passed = thread.passed.get();
    match barrier {
        Barrier::Block => passed.block += 1,
        Barrier::ClusterArriveRelaxed => {
            thread.releases.set(false);
            passed.arrived += 1;
        }
        Barrier::ClusterArrive => {
            thread.releases.set(true);
            passed.arrived += 1;
            passed.released += 1;
        }
        Barrier::ClusterWait => {
            passed.waited += 1;
            passed.acquired += u32::from(thread.releases.get());
        }
        Barrier::GridWait => thread.waited.set(true),
        Barrier::GridLaunchDependents => {}
    }
    thread.passed.set(passed);
}

extern "C" fn shuffle(thread: &Context, bits: u32, from: u32, place: Place) -> u32 {
    thread.place.set(place);
    thread.ask(Request::Shuffle { bits, from });
    let passed = thread.passed.get();
    thread.passed.set(Passed { shuffles: passed.shuffles + 1, ..passed });
    thread.answer.get() as u32
}

extern "C" fn shared(thread: &Context, tag: *const c_void, bytes: u64, place: Place) -> *mut c_void {
    thread.place.set(place);
    thread.ask(Request::Shared { tag: tag as u64, bytes });
    thread.answer.get() as *mut c_void
}

extern "C" fn load_shared(thread: &Context, at: *const f32, place: Place) -> f32 {
    thread.place.set(place);
    thread.touches("reads", |shadow, touch| shadow.read(at as u64, touch));
    // SAFETY: checked: an aligned word of a shared variable.
    unsafe { at.read_volatile() }
}

extern "C" fn store_shared(thread: &Context, at: *mut f32, value: f32, place: Place) {
    thread.place.set(place);
    thread.touches("writes", |shadow, touch| shadow.write(at as u64, touch));
    // SAFETY: as above.
    unsafe { at.write_volatile(value) };
}

extern "C" fn mbarrier(thread: &Context, call: Call, at: *mut u64, operand: u32, place: Place) {
    thread.place.set(place);
    thread.ask(Request::Mbarrier { call, address: at as u64, operand });
}

extern "C" fn store_async(
    thread: &Context,
    at: *mut f32,
    barrier: *mut u64,
    rank: u32,
    value: f32,
    place: Place,
) {
    thread.place.set(place);
    let (address, barrier) = (at as u64, barrier as u64);
    thread.ask(Request::StoreAsync { address, barrier, rank, bits: value.to_bits() });
}

extern "C" fn clock_ns(thread: &Context) -> u64 {
    thread.granted.set(0);
    thread.world().read_clock()
}
