//! `finalize(rows, map, weights)`: for each token the weighted sum of its top_k rows.

use super::{OperandKind, OperandSpec, ResultSpec, Spec};
use crate::program::Inst;

pub(super) const SPEC: Spec = Spec {
    name: "finalize",
    operands: &[
        OperandSpec::new("rows", OperandKind::Param("Permuted")),
        OperandSpec::new("map", OperandKind::Param("RowMap")),
        OperandSpec::new("weights", OperandKind::Param("ExpertWeights")),
    ],
    results: &[ResultSpec::ROWS],
    collective: false,
    lower: |lowering, call| {
        let (rows, map, weights) = (lowering.param(call, 0), lowering.param(call, 1), lowering.param(call, 2));
        // An absent `Option` of weights: every weight is 1.
        let weights = lowering.present(weights).then_some(weights);
        Ok(vec![lowering.push(Inst::Gather { rows, map, weights })])
    },
};
