//! Polls that time out, the launches behind them, and what a reset takes.

use crate::case::Case;
use crate::model::{ENDS, FAULT, NO_FAULT, RECOVERED};
use crate::mutation::Mutation;
use crate::{breaks, holds, never};

/// Polls time out whenever they like, whether or not the words would still come.
fn is_right_with_timeouts(case: Case) {
    holds(Case { timeouts: true, ..case }, &[NO_FAULT, FAULT]);
}

#[test]
fn every_launch_behind_a_timeout_ends() {
    is_right_with_timeouts(Case::one_shot(2, &[1; 6]));
    is_right_with_timeouts(Case { reduced: true, ..Case::one_shot(3, &[1; 4]) });
}

#[test]
fn one_thread_times_out_and_another_does_not() {
    is_right_with_timeouts(Case { lanes: 2, ..Case::one_shot(2, &[1; 3]) });
    is_right_with_timeouts(Case { words: 2, ..Case::one_shot(2, &[1; 4]) });
}

#[test]
fn one_block_times_out_and_another_has_not_begun() {
    is_right_with_timeouts(Case::one_shot(2, &[2, 1, 2]));
    is_right_with_timeouts(Case { resident: 1, ..Case::one_shot(2, &[2, 1, 2]) });
}

#[test]
fn blocks_begin_early_behind_a_timeout() {
    is_right_with_timeouts(Case { early_start: true, ..Case::one_shot(2, &[1; 4]) });
}

fn one_rank_never_comes(ranks: u8, timeouts: bool) -> Case {
    Case { timeouts, absent: Some(0), ..Case::one_shot(ranks, &[1; 3]) }
}

#[test]
fn without_a_peer_every_launch_ends() {
    for ranks in [2, 3] {
        let case = one_rank_never_comes(ranks, true);
        holds(case.clone(), &[FAULT]);
        never(case, NO_FAULT);
    }
}

#[test]
fn without_a_peer_an_unbounded_poll_hangs() {
    breaks(one_rank_never_comes(2, false), ENDS);
}

fn with_a_reset(ranks: u8, launches: &[u8], reset_before: u8) -> Case {
    Case { timeouts: true, reset_before: Some(reset_before), ..Case::one_shot(ranks, launches) }
}

/// No poll times out after the reset: that every schedule ends says that none has to.
#[test]
fn after_a_reset_all_is_as_at_first() {
    holds(with_a_reset(2, &[1; 7], 3), &[NO_FAULT, RECOVERED]);
    holds(with_a_reset(2, &[2, 1, 2, 1], 2), &[NO_FAULT, RECOVERED]);
    holds(Case { reduced: true, ..with_a_reset(3, &[1; 5], 2) }, &[NO_FAULT, RECOVERED]);
}

/// The epoch of a row some of whose threads had their words does advance. Nothing reads it before a reset.
#[test]
fn an_epoch_that_advances_behind_a_fault_does_no_harm() {
    let mutation = Some(Mutation::AdvanceAfterFault);
    is_right_with_timeouts(Case { mutation, ..Case::one_shot(2, &[1; 5]) });
    holds(Case { mutation, ..with_a_reset(2, &[1; 6], 2) }, &[NO_FAULT, RECOVERED]);
}
