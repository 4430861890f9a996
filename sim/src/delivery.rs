//! Stores to exchange memory that are under way.
//!
//! A relaxed store may reach memory after others that come later in its thread, and its four words apart. It has arrived when
//! its launch has ended, and a thread sees its own stores in order. In a random order about half of all words are delayed so.

use crate::order::Rng;
use std::cell::RefCell;

/// A word on its way.
#[derive(Clone, Copy, Debug)]
struct Word {
    launch: usize,
    address: u64,
    value: u32,
}

/// Words on their way; none, unless the order is random.
#[derive(Debug)]
pub(crate) struct Delivery {
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    rng: Rng,
    words: Vec<Word>,
}

/// So many words may be under way.
const CAPACITY: usize = 64;

impl Delivery {
    pub fn new(seed: u64) -> Delivery {
        Delivery { state: RefCell::new(State { rng: Rng(seed), words: Vec::new() }) }
    }

    /// Stores `words` at `address`, now or later.
    ///
    /// # Safety
    /// The memory may be written until `launch` has ended and [`arrive`](Delivery::arrive) was called for it.
    pub unsafe fn store(&self, launch: usize, address: u64, words: &[u32; 4]) {
        let state = &mut *self.state.borrow_mut();
        let first = state.rng.below(4);
        for i in 0..4 {
            let word = (first + i) % 4;
            let word = Word { launch, address: address + 4 * word as u64, value: words[word] };
            let behind_another = state.words.iter().any(|w| w.address == word.address);
            if behind_another || state.rng.one_in(2) {
                state.words.push(word);
            } else {
                word.deliver();
            }
        }
        while state.words.len() > CAPACITY || (!state.words.is_empty() && state.rng.one_in(4)) {
            let chosen = state.rng.below(state.words.len());
            state.deliver_one(chosen);
        }
    }

    /// Delivers what is under way to the four words at `address`: a thread that has stored there reads what it stored.
    pub fn settle(&self, address: u64) {
        self.state.borrow_mut().deliver_all(|w| w.address & !15 == address);
    }

    /// Delivers everything that `launch` has stored.
    pub fn arrive(&self, launch: usize) {
        self.state.borrow_mut().deliver_all(|w| w.launch == launch);
    }

    /// Delivers some of the words; false if there are none.
    pub fn advance(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        let some = state.words.len().div_ceil(8);
        for _ in 0..some {
            let chosen = state.rng.below(state.words.len());
            state.deliver_one(chosen);
        }
        some > 0
    }
}

impl State {
    /// Delivers the oldest word for the address of the `chosen` one.
    fn deliver_one(&mut self, chosen: usize) {
        let address = self.words[chosen].address;
        let oldest = self.words.iter().position(|w| w.address == address).unwrap_or(chosen);
        self.words.remove(oldest).deliver();
    }

    fn deliver_all(&mut self, which: impl Fn(&Word) -> bool) {
        self.words.retain(|word| {
            if which(word) {
                word.deliver();
            }
            !which(word)
        });
    }
}

impl Word {
    fn deliver(self) {
        // SAFETY: whoever called `store` has vouched for it.
        unsafe { (self.address as *mut u32).write_volatile(self.value) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_arrive_in_any_order_but_in_order_at_one_address() {
        let mut memory = [0u128; 2];
        let at = memory.as_mut_ptr() as u64;
        let delivery = Delivery::new(5);
        let read = |i: u64| {
            // SAFETY: `memory` is ours.
            unsafe { crate::polled::read(at + 16 * i) }
        };
        let mut partial = 0;
        for round in 1..100 {
            // SAFETY: as above, and `arrive` is called at the end.
            unsafe { delivery.store(0, at, &[round; 4]) };
            partial += usize::from(read(0) != [round; 4]);
            assert!(read(0).iter().all(|&w| w <= round));
            // SAFETY: as above.
            unsafe { delivery.store(1, at + 16, &[round; 4]) };
            delivery.settle(at + 16);
            assert_eq!(read(1), [round; 4]);
        }
        assert!(partial > 10, "{partial}");
        delivery.arrive(0);
        assert_eq!(read(0), [99; 4]);
        assert!(!delivery.advance());
    }
}
