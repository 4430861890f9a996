//! `owner` and its two hops as they are, and its rules broken one by one.

use crate::case::{Case, EPOCHS, Hop};
use crate::model::{ENDS, FAULT, KEPT, NO_FAULT, RECOVERED, RIGHT};
use crate::mutation::Mutation;
use crate::{breaks, holds, never};

fn is_right(case: Case) {
    holds(case, &[NO_FAULT]);
}

fn is_right_with_timeouts(case: Case) {
    holds(Case { timeouts: true, ..case }, &[NO_FAULT, FAULT]);
}

#[test]
fn two_owners_use_every_generation_again() {
    is_right(Case::owner(2, 2, &[1; 4]));
    is_right(Case { reduced: true, ..Case::owner(2, 2, &[1; 7]) });
}

#[test]
fn three_owners() {
    is_right(Case { reduced: true, ..Case::owner(3, 3, &[1; 2]) });
}

/// Of a row with fewer blocks than ranks, some ranks own nothing: owners hear of them, and they of owners.
#[test]
fn ranks_that_own_nothing() {
    is_right(Case::owner(2, 1, &[1; 7]));
    is_right(Case { reduced: true, ..Case::owner(3, 1, &[1; 7]) });
    is_right(Case { reduced: true, ..Case::owner(3, 2, &[1; 4]) });
    is_right(Case { reduced: true, ..Case::owner(4, 1, &[1; 4]) });
}

#[test]
fn two_tokens() {
    is_right(Case::owner(2, 1, &[2; 5]));
    is_right(Case { reduced: true, ..Case::owner(2, 2, &[2; 2]) });
}

#[test]
fn words_of_a_vector_arrive_apart() {
    is_right(Case { words: 2, ..Case::owner(2, 1, &[1; 5]) });
}

#[test]
fn tokens_change_from_launch_to_launch() {
    is_right(Case::owner(2, 1, &[2, 1, 2, 1, 1, 2, 1, 1, 1, 2]));
    is_right(Case { reduced: true, ..Case::owner(2, 2, &[2, 1, 1, 1]) });
}

#[test]
fn a_captured_graph_replays() {
    is_right(Case::owner(2, 1, &[1, 2].repeat(4)));
}

#[test]
fn epochs_wrap() {
    is_right(Case { first_epoch: EPOCHS - 2, ..Case::owner(2, 1, &[2, 1, 2, 2, 1, 2]) });
}

#[test]
fn blocks_with_several_tokens() {
    is_right(Case { resident: 1, ..Case::owner(2, 1, &[2; 5]) });
    is_right(Case { resident: 1, ..Case::owner(2, 1, &[2, 1, 1, 2, 1, 2]) });
}

#[test]
fn blocks_with_several_tokens_in_an_order_of_their_own() {
    is_right(Case { resident: 1, own_order: true, ..Case::owner(2, 1, &[2; 5]) });
    is_right(Case { resident: 1, own_order: true, reduced: true, ..Case::owner(2, 2, &[2; 2]) });
}

#[test]
fn blocks_begin_before_the_launch_before_has_ended() {
    is_right(Case { early_start: true, ..Case::owner(2, 1, &[2, 1, 2]) });
}

#[test]
fn every_launch_behind_a_timeout_ends() {
    is_right_with_timeouts(Case::owner(2, 1, &[1; 6]));
    is_right_with_timeouts(Case { reduced: true, ..Case::owner(2, 2, &[1; 3]) });
    is_right_with_timeouts(Case { reduced: true, ..Case::owner(3, 1, &[1; 3]) });
    is_right_with_timeouts(Case { resident: 1, ..Case::owner(2, 1, &[2, 1, 2]) });
}

/// Whether it is the owner of all, or one who owns nothing.
#[test]
fn without_a_peer_every_launch_ends() {
    for (ranks, absent) in [(2, 0), (2, 1), (3, 0), (3, 2)] {
        let case = Case { timeouts: true, absent: Some(absent), ..Case::owner(ranks, 1, &[1; 2]) };
        holds(case.clone(), &[FAULT]);
        never(case, NO_FAULT);
    }
}

#[test]
fn after_a_reset_all_is_as_at_first() {
    let case = Case { timeouts: true, reset_before: Some(2), ..Case::owner(2, 1, &[1; 5]) };
    holds(case, &[NO_FAULT, RECOVERED]);
}

/// An owner publishes launch e + 1 after it has a slice of it from everyone, who have left launch e by then, with their
/// re-arms: sums could do with two generations, and could be emptied a launch later. They have the slices' rule.
#[test]
fn sums_have_a_generation_to_spare() {
    for mutation in [Mutation::TwoGenerations, Mutation::ArmNext] {
        let mutation = Some(mutation);
        is_right(Case { mutation, only: Some(Hop::Sums), ..Case::owner(2, 2, &[1; 4]) });
        is_right(Case { mutation, only: Some(Hop::Sums), reduced: true, ..Case::owner(3, 1, &[1; 5]) });
    }
}

fn found(mutation: Mutation, case: Case, property: &'static str) {
    breaks(Case { mutation: Some(mutation), ..case }, property);
}

/// In the hop of the slices, and in that of the sums.
fn in_hop(hop: Hop, case: Case) -> Case {
    Case { only: Some(hop), ..case }
}

#[test]
fn two_generations_of_slices() {
    found(Mutation::TwoGenerations, in_hop(Hop::Rows, Case::owner(2, 2, &[1; 2])), KEPT);
    found(Mutation::TwoGenerations, in_hop(Hop::Rows, Case::owner(2, 2, &[1; 2])), ENDS);
}

#[test]
fn publishing_before_every_slice_is_there() {
    found(Mutation::SumEarly, Case::owner(2, 1, &[1]), RIGHT);
}

#[test]
fn waiting_for_sums_before_doing_what_is_owed() {
    found(Mutation::ReceiveBeforeSumming, Case::owner(2, 2, &[1]), ENDS);
}

#[test]
fn summing_token_by_token() {
    let case = Case { resident: 1, own_order: true, ..Case::owner(2, 2, &[2]) };
    found(Mutation::SumTokenByToken, case, ENDS);
}

#[test]
fn polling_sums_in_the_memory_of_owners() {
    found(Mutation::PollPeers, in_hop(Hop::Sums, Case::owner(2, 1, &[1; 2])), ENDS);
}

#[test]
fn arming_the_generation_in_use() {
    found(Mutation::ArmCurrent, in_hop(Hop::Rows, Case::owner(2, 2, &[1])), ENDS);
    found(Mutation::ArmCurrent, in_hop(Hop::Sums, Case::owner(2, 2, &[1])), ENDS);
}

#[test]
fn arming_the_slices_of_the_next_generation() {
    found(Mutation::ArmNext, in_hop(Hop::Rows, Case::owner(2, 2, &[1; 2])), ENDS);
}

#[test]
fn arming_one_hop_alone() {
    found(Mutation::NeverArm, in_hop(Hop::Rows, Case::owner(2, 1, &[1; 4])), RIGHT);
    found(Mutation::NeverArm, in_hop(Hop::Sums, Case::owner(2, 1, &[1; 4])), RIGHT);
}

#[test]
fn checking_one_word_of_a_sum() {
    found(Mutation::CheckOneWord, Case { words: 2, ..Case::owner(2, 1, &[1]) }, RIGHT);
}

#[test]
fn publishing_the_bits_of_an_empty_word() {
    found(Mutation::RawNan, in_hop(Hop::Sums, Case::owner(2, 1, &[1; 2])), ENDS);
}

#[test]
fn one_epoch_for_all_slots() {
    found(Mutation::SharedEpoch, Case::owner(2, 1, &[2, 1, 1, 2]), RIGHT);
}

#[test]
fn advancing_the_epoch_before_all_have_read_it() {
    found(Mutation::AdvanceWithoutBarrier, Case { resident: 1, ..Case::owner(2, 2, &[1]) }, ENDS);
}

#[test]
fn publishing_after_a_fault() {
    found(Mutation::PublishAfterFault, Case { timeouts: true, ..Case::owner(2, 1, &[1]) }, RIGHT);
}

#[test]
fn sending_after_a_fault() {
    found(Mutation::SendAfterFault, Case { timeouts: true, ..Case::owner(2, 1, &[1; 2]) }, RIGHT);
}

#[test]
fn not_waiting_for_the_launch_before() {
    found(Mutation::NoWait, Case::owner(2, 1, &[1; 4]), ENDS);
}
