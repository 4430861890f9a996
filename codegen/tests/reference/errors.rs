//! What does not fit is an error that names it.

use crate::graphs::{self, Binding, k2_params};
use seamline_codegen::reference::{self, Input, RankInputs};
use seamline_codegen::workload::{Kind, Workload};
use seamline_codegen::{Presence, Program};

fn program() -> Program {
    Binding { ranks: 2, ..Binding::default() }.bind(&graphs::k2(None))
}

/// The message for the K2 seam at three tokens with `change` done to its inputs.
fn message(change: impl FnOnce(&mut Vec<RankInputs<'_>>)) -> String {
    let program = program();
    let workload = Workload::new(&program, 3, 1, Kind::Ordinary);
    let mut inputs = workload.inputs();
    change(&mut inputs);
    reference::run(&program, &inputs, 3).unwrap_err().to_string()
}

#[test]
fn one_rank_too_few() {
    assert_eq!(
        message(|inputs| inputs.truncate(1)),
        "`moe_finalize_ar_residual_rmsnorm` is bound to 2 ranks, and got inputs for 1: bind it to as many ranks as run it"
    );
}

#[test]
fn no_rank_at_all() {
    assert!(reference::run(&program(), &[], 1).unwrap_err().to_string().contains("got inputs for 0"));
    assert!(reference::run_each(&[], &[], 1).unwrap_err().to_string().contains("got inputs for 0"));
}

#[test]
fn one_input_too_few() {
    assert_eq!(
        message(|inputs| inputs[1].0.truncate(6)),
        "rank 1 of `moe_finalize_ar_residual_rmsnorm` got 6 inputs for 7 parameters: give one per parameter, \
         `Absent` for those the variant lacks"
    );
}

#[test]
fn every_kind_of_argument_in_another_ones_place() {
    let at = |param: usize, input: Input<'static>| message(move |inputs| inputs[1].0[param] = input);
    assert_eq!(at(6, Input::Absent), "`eps` of rank 1 is a Scalar and needs a scalar, and got nothing");
    assert_eq!(at(6, Input::Bytes(&[])), "`eps` of rank 1 is a Scalar and needs a scalar, and got bytes");
    assert_eq!(
        at(5, Input::Scalar(1.0)),
        "`rms_gamma` of rank 1 is a Channels and needs bytes, and got a scalar"
    );
    assert_eq!(at(4, Input::Absent), "`residual_in` of rank 1 is a Tokens and needs bytes, and got nothing");
}

#[test]
fn an_input_that_the_variant_lacks() {
    let present = Presence::ALL.without(k2_params::SHARED);
    let variant = Binding { ranks: 2, present, ..Binding::default() }.bind(&graphs::k2(None));
    let workload = Workload::new(&program(), 3, 1, Kind::Ordinary);
    assert_eq!(
        reference::run(&variant, &workload.inputs(), 3).unwrap_err().to_string(),
        "`shared_expert_output` of rank 0 is a Tokens and needs nothing, as the variant lacks it, and got a value"
    );
}

#[test]
fn a_buffer_one_element_too_short() {
    for (param, elements, needs) in [(1, 11, 12), (2, 11, 12), (3, 791, 792), (4, 791, 792), (5, 263, 264)] {
        let program = program();
        let workload = Workload::new(&program, 3, 1, Kind::Ordinary);
        let mut inputs = workload.inputs();
        let Input::Bytes(bytes) = inputs[0].0[param] else { panic!("{param}") };
        let size = bytes.len() / needs;
        inputs[0].0[param] = Input::Bytes(&bytes[..elements * size]);
        let message = reference::run(&program, &inputs, 3).unwrap_err().to_string();
        let expected = format!("holds {elements} elements of ");
        assert!(
            message.contains(&expected) && message.contains(&format!("3 tokens need {needs}")),
            "{message}"
        );
    }
}

#[test]
fn more_tokens_than_memory_could_hold() {
    let program = program();
    let workload = Workload::new(&program, 3, 1, Kind::Ordinary);
    assert!(reference::run(&program, &workload.inputs(), usize::MAX).is_err());
}

#[test]
fn ranks_that_differ_after_the_exchange() {
    let graph = graphs::k2(None);
    let without = |param| {
        Binding { ranks: 2, present: Presence::ALL.without(param), ..Binding::default() }.bind(&graph)
    };
    let (full, no_residual) = (program(), without(k2_params::RESIDUAL));
    let workload = Workload::new(&full, 3, 1, Kind::Ordinary);
    let mut inputs = workload.inputs();
    inputs[1].0[k2_params::RESIDUAL.0 as usize] = Input::Absent;
    assert_eq!(
        reference::run_each(&[&full, &no_residual], &inputs, 3).unwrap_err().to_string(),
        "rank 1 runs a different `moe_finalize_ar_residual_rmsnorm` than rank 0: only inputs used before the \
         exchange may differ in presence"
    );
}
