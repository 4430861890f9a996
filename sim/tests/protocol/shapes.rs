//! Collectives in which a rank does not hear from everyone that it writes to: the arrival word.

use crate::case::{Case, Shape};
use crate::model::{ENDS, NO_FAULT, RIGHT};
use crate::mutation::Mutation;
use crate::{breaks, holds};

fn is_right(shape: Shape, case: Case) {
    holds(Case { shape, ..case }, &[NO_FAULT]);
}

fn without_arrival_words(shape: Shape, case: Case) -> Case {
    Case { shape, mutation: Some(Mutation::NoArrivalWord), ..case }
}

#[test]
fn reduce_scatter_of_fewer_tokens_than_ranks() {
    is_right(Shape::ReduceScatter, Case::one_shot(2, &[1; 7]));
    is_right(Shape::ReduceScatter, Case::one_shot(3, &[1; 6]));
    is_right(Shape::ReduceScatter, Case { reduced: true, ..Case::one_shot(3, &[2, 1, 2, 2, 1, 2]) });
    is_right(Shape::ReduceScatter, Case::one_shot(2, &[2, 1, 1, 2, 1, 2, 2]));
}

#[test]
fn all_gather_of_fewer_tokens_than_ranks() {
    is_right(Shape::AllGather, Case::one_shot(2, &[1; 7]));
    is_right(Shape::AllGather, Case::one_shot(3, &[1; 6]));
    is_right(Shape::AllGather, Case { reduced: true, ..Case::one_shot(3, &[2, 1, 2, 2, 1, 2]) });
    is_right(Shape::AllGather, Case::one_shot(2, &[2, 1, 1, 2, 1, 2, 2]));
}

#[test]
fn without_arrival_words_reduce_scatter_overtakes_the_owner() {
    let case = without_arrival_words(Shape::ReduceScatter, Case::one_shot(2, &[1; 4]));
    breaks(case.clone(), RIGHT);
    breaks(case, ENDS);
}

#[test]
fn without_arrival_words_all_gather_overtakes_its_readers() {
    let case = without_arrival_words(Shape::AllGather, Case::one_shot(2, &[1; 4]));
    breaks(case.clone(), RIGHT);
    breaks(case, ENDS);
}

/// With a token of every rank in every launch, the rows say what the arrival words would.
#[test]
fn as_many_tokens_as_ranks_need_no_arrival_words() {
    for shape in [Shape::ReduceScatter, Shape::AllGather] {
        holds(without_arrival_words(shape, Case::one_shot(2, &[2; 5])), &[NO_FAULT]);
    }
}
