//! Each rule broken: the checker finds the schedule that the rule is there for.

use crate::breaks;
use crate::case::Case;
use crate::model::{ENDS, KEPT, ONE_TIMEOUT, RIGHT};
use crate::mutation::Mutation;

fn found(mutation: Mutation, case: Case, property: &'static str) {
    breaks(Case { mutation: Some(mutation), ..case }, property);
}

#[test]
fn two_generations() {
    found(Mutation::TwoGenerations, Case::one_shot(2, &[1; 2]), KEPT);
    found(Mutation::TwoGenerations, Case::one_shot(2, &[1; 2]), ENDS);
}

#[test]
fn arming_the_generation_in_use() {
    found(Mutation::ArmCurrent, Case::one_shot(2, &[1]), ENDS);
}

#[test]
fn arming_the_next_generation() {
    found(Mutation::ArmNext, Case::one_shot(2, &[1; 2]), ENDS);
}

#[test]
fn arming_nothing() {
    found(Mutation::NeverArm, Case::one_shot(2, &[1; 4]), RIGHT);
}

#[test]
fn polling_the_memory_of_peers() {
    found(Mutation::PollPeers, Case::one_shot(2, &[1; 2]), ENDS);
}

#[test]
fn checking_one_word_of_a_vector() {
    found(Mutation::CheckOneWord, Case { words: 2, ..Case::one_shot(2, &[1]) }, RIGHT);
}

#[test]
fn sending_the_bits_of_an_empty_word() {
    found(Mutation::RawNan, Case::one_shot(2, &[1; 2]), ENDS);
}

#[test]
fn one_epoch_for_all_slots() {
    found(Mutation::SharedEpoch, Case::one_shot(2, &[2, 1, 1, 2]), RIGHT);
}

#[test]
fn an_epoch_fixed_at_capture() {
    found(Mutation::EpochFromTheHost, Case::one_shot(2, &[1; 4]), RIGHT);
}

#[test]
fn advancing_the_epoch_before_all_have_read_it() {
    found(Mutation::AdvanceWithoutBarrier, Case { lanes: 2, ..Case::one_shot(2, &[1]) }, ENDS);
}

#[test]
fn wrapping_at_a_power_of_two() {
    found(Mutation::WrapOffTheGenerations, Case { first_epoch: 5, ..Case::one_shot(2, &[1; 3]) }, RIGHT);
}

#[test]
fn more_blocks_than_fit() {
    found(Mutation::MoreBlocksThanFit, Case { resident: 1, ..Case::one_shot(2, &[2]) }, ENDS);
}

#[test]
fn receiving_before_all_is_sent() {
    let case = Case { resident: 1, own_order: true, ..Case::one_shot(2, &[2]) };
    found(Mutation::ReceiveBeforeSendingAll, case, ENDS);
}

#[test]
fn not_waiting_for_the_launch_before() {
    found(Mutation::NoWait, Case::one_shot(2, &[1; 4]), ENDS);
}

#[test]
fn reading_the_epoch_before_the_wait() {
    found(Mutation::EpochBeforeWait, Case { early_start: true, ..Case::one_shot(2, &[1; 2]) }, RIGHT);
}

#[test]
fn arming_before_the_wait() {
    found(Mutation::ArmBeforeWait, Case { early_start: true, ..Case::one_shot(2, &[1; 2]) }, ENDS);
}

#[test]
fn reading_the_fault_before_the_wait() {
    let case = Case { early_start: true, timeouts: true, ..Case::one_shot(2, &[1; 2]) };
    found(Mutation::FaultBeforeWait, case, RIGHT);
}

#[test]
fn sending_after_a_fault() {
    found(Mutation::SendAfterFault, Case { timeouts: true, ..Case::one_shot(2, &[1; 2]) }, RIGHT);
}

#[test]
fn forgetting_a_fault() {
    let case = Case { timeouts: true, ..Case::one_shot(2, &[1; 2]) };
    found(Mutation::ForgetFault, case.clone(), RIGHT);
    found(Mutation::ForgetFault, case, ONE_TIMEOUT);
}

#[test]
fn resetting_alone() {
    let case = Case { timeouts: true, reset_before: Some(1), ..Case::one_shot(2, &[1; 2]) };
    found(Mutation::ResetAlone, case.clone(), RIGHT);
    found(Mutation::ResetAlone, case, ENDS);
}

#[test]
fn resetting_without_emptying_the_regions() {
    let case = Case { timeouts: true, reset_before: Some(1), ..Case::one_shot(2, &[1; 2]) };
    found(Mutation::ResetKeepsWords, case, RIGHT);
}

#[test]
fn resetting_without_the_epochs() {
    let case = Case { timeouts: true, reset_before: Some(1), ..Case::one_shot(2, &[1; 2]) };
    found(Mutation::ResetKeepsEpochs, case, ENDS);
}
