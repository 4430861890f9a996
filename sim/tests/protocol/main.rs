//! The exchange protocol of `templates/cuda/exchange.cuh` and `one_shot.cuh`, proven for small groups by trying
//! every schedule; and every rule of it broken, to see that the proof would notice. `docs/protocol.md` explains
//! the rules and says what the proof covers.
//!
//! Threads send, poll, time out and leave one at a time in any order. A store is issued when its thread sends and
//! lands whenever it likes, each 32-bit word for itself: only stores of one rank to one word keep their order, and
//! a launch does not end before its rank's stores to its own region have landed. A word carries the number of the
//! launch that sent it, so a row is right exactly if all its words carry the number of the launch that sums it.
//!
//! The checker is stateright. The protocol has few states and very many schedules: a checker that remembers states
//! visits each once, and breadth first it comes to short counterexamples first. loom tries schedules of Rust threads
//! under the C++ memory model, which has neither words that travel on their own nor the end of a kernel, and
//! remembers no state; polls would have to be bounded by hand.
//!
//! `cargo test -p seamline-sim --test protocol -- --nocapture` prints the number of states of every proof and the
//! schedule of every counterexample.

mod broken_rules;
mod case;
mod faults;
mod kernel;
mod model;
mod mutation;
mod one_shot;
mod owner;
mod shapes;
mod state;

use stateright::{Checker, Model, Path};

use case::Case;
use model::{Action, ENDS, KEPT, ONE_TIMEOUT, RIGHT};
use state::State;

/// Tries every schedule of a case. Each must keep every property; and `witnesses` must occur, so that no case
/// holds because nothing happens in it.
fn holds(case: Case, witnesses: &[&'static str]) {
    let checker = case.clone().checker().spawn_bfs().join();
    for property in [RIGHT, KEPT, ENDS, ONE_TIMEOUT] {
        if let Some(path) = checker.discovery(property) {
            panic!("not so: {property}, after\n{}", schedule(path));
        }
    }
    for witness in witnesses {
        assert!(checker.discovery(witness).is_some(), "not so: {witness}");
    }
    println!("{} states of {case:?}", checker.unique_state_count());
}

/// Tries every schedule of a case, none of which may come to `witness`.
fn never(case: Case, witness: &'static str) {
    let checker = case.checker().spawn_bfs().join();
    if let Some(path) = checker.discovery(witness) {
        panic!("{witness}:\n{}", schedule(path));
    }
}

/// Finds a shortest schedule that does not keep a property: the checker's own is only one of the first.
fn breaks(case: Case, property: &'static str) {
    for depth in 1.. {
        let checker = case.clone().checker().target_max_depth(depth).spawn_bfs().join();
        if let Some(path) = checker.discovery(property) {
            println!("not so: {property}, after\n{}", schedule(path));
            return;
        }
        assert!(checker.max_depth() >= depth, "every schedule keeps this: {property}");
    }
}

fn schedule(path: Path<State, Action>) -> String {
    path.into_actions().iter().map(|action| format!("  {action:?}\n")).collect()
}
