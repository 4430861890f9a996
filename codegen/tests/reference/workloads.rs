//! Workloads are what their kinds say.

use crate::graphs::{self, Binding};
use seamline_codegen::reference::Buffer;
use seamline_codegen::workload::{Argument, Kind, Workload, padded_rows};
use seamline_codegen::{DType, Role};
use std::sync::Arc;

fn tensor(workload: &Workload, rank: usize, param: usize) -> Arc<Buffer> {
    match &workload.rank(rank)[param] {
        Argument::Tensor(buffer) => buffer.clone(),
        other => panic!("{other:?}"),
    }
}

fn k2(tokens: usize, dtype: DType, kind: Kind) -> Workload {
    let binding = Binding { hidden: 64, top_k: 8, ranks: 8, dtype, ..Binding::default() };
    Workload::new(&binding.bind(&graphs::k2(None)), tokens, 1, kind)
}

#[test]
fn the_kimi_workload_of_64_tokens_has_6272_rows() {
    let workload = k2(64, DType::Bf16, Kind::KIMI_K2);
    for rank in 0..8 {
        assert_eq!(tensor(&workload, rank, 0).len() / 64, padded_rows(64 * 8, 384, 16));
        assert_eq!(tensor(&workload, rank, 0).len() / 64, 6272);
        // All but the 512 that are pointed at hold NaN.
        let rows = tensor(&workload, rank, 0).to_f32();
        assert_eq!(rows.chunks(64).filter(|row| row.iter().all(|x| x.is_nan())).count(), 6272 - 512);
    }
}

#[test]
fn tensor_parallel_ranks_share_the_routing_and_not_the_rows() {
    let workload = k2(5, DType::Bf16, Kind::KIMI_K2);
    assert_eq!(tensor(&workload, 0, 1), tensor(&workload, 7, 1));
    assert_eq!(tensor(&workload, 0, 2), tensor(&workload, 7, 2));
    assert_ne!(tensor(&workload, 0, 0), tensor(&workload, 7, 0));
}

#[test]
fn inputs_are_equal_on_all_ranks_exactly_where_the_contract_wants_it() {
    for kind in [Kind::Ordinary, Kind::KIMI_K2].into_iter().chain(Kind::HOSTILE) {
        let workload = k2(5, DType::Bf16, kind);
        for rank in 1..8 {
            for after in [4, 5] {
                assert_eq!(tensor(&workload, 0, after), tensor(&workload, rank, after), "{kind} {after}");
            }
            assert_ne!(tensor(&workload, 0, 3), tensor(&workload, rank, 3), "{kind}");
        }
    }
}

#[test]
fn a_weight_used_before_the_exchange_is_each_ranks_own() {
    let program = Binding::default().bind(&graphs::norm_then_sum());
    let workload = Workload::new(&program, 2, 1, Kind::Ordinary);
    assert_ne!(tensor(&workload, 0, 1), tensor(&workload, 1, 1));
}

#[test]
fn a_seed_gives_the_same_bits_and_another_gives_others() {
    let program = Binding::default().bind(&graphs::gated());
    let workload = |seed| Workload::new(&program, 4, seed, Kind::Ordinary);
    let bits = |workload: &Workload| tensor(workload, 1, 0).bytes().to_vec();
    assert_eq!(bits(&workload(1)), bits(&workload(1)));
    assert_ne!(bits(&workload(1)), bits(&workload(2)));
    // Known bits, so that a change of the generator or of a platform shows.
    let row = tensor(&workload(1), 0, 3);
    assert_eq!(row.as_slice::<u16>().unwrap()[..4], KNOWN);
}

const KNOWN: [u16; 4] = [49147, 16112, 49112, 16246];

#[test]
fn epsilon_is_small_and_another_scalar_is_not() {
    let scalar = |workload: &Workload, param: usize| match workload.rank(0)[param] {
        Argument::Scalar(x) => x,
        ref other => panic!("{other:?}"),
    };
    assert_eq!(scalar(&k2(1, DType::Bf16, Kind::Ordinary), 6), 1e-5);
    let gated = Binding::default().bind(&graphs::gated());
    assert!((0.5..1.5).contains(&scalar(&Workload::new(&gated, 1, 1, Kind::Ordinary), 6)));
}

#[test]
fn hostile_kinds_hold_what_they_are_named_for() {
    for dtype in DType::FLOATS {
        let rows = |kind| tensor(&k2(16, dtype, kind), 1, 0).to_f32();
        let map = |kind| tensor(&k2(16, dtype, kind), 1, 1).as_slice::<i32>().unwrap().to_vec();
        let any = |kind, test: fn(f32) -> bool| rows(kind).into_iter().any(test);
        assert!(any(Kind::NegativeZeros, |x| x == 0.0 && x.is_sign_negative()));
        assert!(
            any(Kind::InfAndNan, |x| x == f32::INFINITY) && any(Kind::InfAndNan, |x| x == f32::NEG_INFINITY)
        );
        let smallest_normal = if dtype == DType::F16 { 2f32.powi(-14) } else { f32::MIN_POSITIVE };
        assert!(rows(Kind::Subnormals).iter().any(|x| *x != 0.0));
        assert!(rows(Kind::Subnormals).iter().all(|x| x.is_nan() || x.abs() < smallest_normal));
        assert!(map(Kind::NanBehindDropped).contains(&-1));
        assert!(map(Kind::AllDropped)[..8].iter().all(|&row| row == -1));
        assert!(map(Kind::AllDropped)[8..16].iter().all(|&row| row >= 0));
        let count = (rows(Kind::OutOfRange).len() / 64) as i32;
        for index in [count, count + 1, i32::MIN, -2, i32::MAX] {
            assert!(map(Kind::OutOfRange).contains(&index), "{index}");
        }
        assert!(rows(Kind::NoRows).is_empty());
    }
}

#[test]
fn every_kind_makes_inputs_for_every_pattern_that_fit_it() {
    let kinds =
        [Kind::Ordinary, Kind::KIMI_K2, Kind::KIMI_K2_EXPERT_PARALLEL].into_iter().chain(Kind::HOSTILE);
    for kind in kinds {
        for graph in graphs::all() {
            for tokens in [0, 1, 5] {
                crate::run(&Binding { hidden: 9, ..Binding::default() }.bind(&graph), tokens, 1, kind);
            }
        }
    }
}

#[test]
fn an_engine_has_outlier_channels() {
    let binding = Binding { hidden: 7168, top_k: 1, ranks: 1, ..Binding::default() };
    let program = binding.bind(&graphs::k2(None));
    let residual =
        program.params.iter().position(|p| p.role == Role::Tokens(seamline_codegen::Elem::Pattern));
    let workload = Workload::new(&program, 1, 1, Kind::KIMI_K2);
    let row = tensor(&workload, 0, residual.unwrap()).to_f32();
    let outliers = row.iter().filter(|x| x.abs() > 4.0).count();
    assert!((3..40).contains(&outliers), "{outliers}");
}
