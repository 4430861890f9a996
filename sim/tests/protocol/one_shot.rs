//! `one_shot` as it is: every schedule of every launch is right.

use crate::case::{Case, EPOCHS};
use crate::holds;
use crate::model::NO_FAULT;

fn is_right(case: Case) {
    holds(case, &[NO_FAULT]);
}

#[test]
fn two_ranks_use_every_generation_again() {
    is_right(Case::one_shot(2, &[1; 7]));
}

#[test]
fn three_ranks_use_every_generation_again() {
    is_right(Case::one_shot(3, &[1; 4]));
    is_right(Case { reduced: true, ..Case::one_shot(3, &[1; 7]) });
}

#[test]
fn four_ranks() {
    is_right(Case { reduced: true, ..Case::one_shot(4, &[1; 4]) });
}

#[test]
fn two_tokens() {
    is_right(Case::one_shot(2, &[2; 4]));
    is_right(Case { reduced: true, ..Case::one_shot(2, &[2; 7]) });
}

#[test]
fn three_ranks_and_two_tokens() {
    is_right(Case { reduced: true, ..Case::one_shot(3, &[2, 1, 2, 2]) });
}

#[test]
fn words_of_a_vector_arrive_apart() {
    is_right(Case { words: 2, ..Case::one_shot(2, &[1; 6]) });
}

#[test]
fn threads_share_a_row() {
    is_right(Case { lanes: 2, ..Case::one_shot(2, &[1; 6]) });
    is_right(Case { lanes: 2, words: 2, reduced: true, ..Case::one_shot(2, &[1; 5]) });
}

#[test]
fn tokens_change_from_launch_to_launch() {
    is_right(Case::one_shot(2, &[2, 1, 2, 1, 1, 2, 1, 1, 1, 2]));
}

#[test]
fn a_captured_graph_replays() {
    is_right(Case::one_shot(2, &[1, 2].repeat(4)));
}

#[test]
fn epochs_wrap() {
    is_right(Case { first_epoch: EPOCHS - 2, ..Case::one_shot(2, &[2, 1, 2, 2, 1, 2]) });
}

#[test]
fn blocks_with_several_tokens() {
    is_right(Case { resident: 1, ..Case::one_shot(2, &[2; 6]) });
    is_right(Case { resident: 1, lanes: 2, reduced: true, ..Case::one_shot(2, &[2; 5]) });
}

#[test]
fn blocks_with_several_tokens_in_an_order_of_their_own() {
    is_right(Case { resident: 1, own_order: true, ..Case::one_shot(2, &[2; 6]) });
}

/// A launch of one token keeps its own row in registers and neither writes nor empties that row in its region.
#[test]
fn launches_with_and_without_waves_share_a_region() {
    is_right(Case { resident: 1, ..Case::one_shot(2, &[2, 1, 1, 2, 1, 2]) });
}

#[test]
fn blocks_begin_before_the_launch_before_has_ended() {
    is_right(Case { early_start: true, ..Case::one_shot(2, &[2, 1, 2]) });
}
