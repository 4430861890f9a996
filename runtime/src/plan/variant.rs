//! A kernel for one set of optional inputs: its program, its source, and how launches are shaped.

use crate::group::region::RegionKey;
use crate::plan::placement::Placement;
use seamline_codegen::emit::{Module, Target, emit};
use seamline_codegen::schedule::{Geometry, LaunchShape, Planner, Range};
use seamline_codegen::{Graph, ParamId, Presence, Program};
use std::sync::OnceLock;

/// A kernel for one set of optional inputs.
#[derive(Debug)]
pub struct Variant {
    program: Program,
    target: Target,
    module: OnceLock<Module>,
    steps: Vec<Step>,
}

/// Launches of up to so many tokens, from where the step before ends, have one geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) up_to: u64,
    /// Index into the module's entries.
    pub(crate) entry: usize,
    /// Index into the kernel's regions; 0 where it has none.
    pub(crate) region: usize,
    pub(crate) geometry: Geometry,
    /// Clusters of the grid; `None` for one per token.
    pub(crate) clusters: Option<u32>,
}

impl Step {
    /// The tokens of `range`, which the module's entry `entry` was made for: it has one per range, in order.
    fn new(planner: &Planner<'_>, range: &Range, entry: usize, regions: &[RegionKey]) -> Step {
        let clusters = |tokens: u64| planner.shape(tokens).clusters;
        let one_per_token =
            u64::from(clusters(range.from)) == range.from && u64::from(clusters(range.up_to)) == range.up_to;
        Step {
            up_to: range.up_to,
            entry,
            // Its schedule exchanges nothing, or its region is one of the kernel's.
            region: regions.iter().position(|r| r.schedule == range.geometry.schedule).unwrap_or(0),
            geometry: range.geometry,
            clusters: (!one_per_token).then_some(clusters(range.from)),
        }
    }

    pub(crate) fn shape(&self, tokens: u64) -> LaunchShape {
        LaunchShape { geometry: self.geometry, clusters: self.clusters.unwrap_or(tokens as u32) }
    }
}

impl Variant {
    /// For launches of up to `most` tokens each, which exchange through `regions`.
    pub(crate) fn new(program: Program, most: u64, placement: &Placement, regions: &[RegionKey]) -> Variant {
        let planner = placement.planner(&program);
        let ranges = planner.ranges(most);
        let step = |(entry, range)| Step::new(&planner, range, entry, regions);
        let steps = ranges.iter().enumerate().map(step).collect();
        let target = Target {
            geometries: ranges.into_iter().map(|range| range.geometry).collect(),
            early_trigger: placement.early_trigger,
            one_grid: placement.one_grid,
        };
        Variant { program, target, module: OnceLock::new(), steps }
    }

    /// The graph bound to this variant's dims. For executors; not public API.
    #[doc(hidden)]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The generated source and its entries. For executors; not public API.
    #[doc(hidden)]
    pub fn module(&self) -> &Module {
        self.module.get_or_init(|| emit(&self.program, &self.target))
    }

    /// Which optional inputs it has, in words.
    pub fn describe(&self, graph: &Graph) -> String {
        describe(graph, self.present())
    }

    pub(crate) fn present(&self) -> Presence {
        self.program.dims.present
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The step of a launch of `tokens` tokens, of which there are few.
    #[inline]
    pub(crate) fn step(&self, tokens: u64) -> &Step {
        let last = self.steps.len() - 1;
        self.steps[..last].iter().find(|s| tokens <= s.up_to).unwrap_or(&self.steps[last])
    }
}

/// A set of optional inputs in words.
pub(crate) fn describe(graph: &Graph, present: Presence) -> String {
    let optional = || graph.params.iter().enumerate().filter(|(_, p)| p.optional);
    let absent: Vec<_> = optional()
        .filter(|(i, _)| !present.has(ParamId(*i as u32)))
        .map(|(_, p)| format!("`{}`", p.name))
        .collect();
    match absent.is_empty() {
        true => "every optional input".into(),
        false => format!("no {}", absent.join(" and no ")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use seamline_codegen::schedule::DeviceModel;
    use seamline_codegen::{
        DType, Dims, Elem, Fixed, Node, Op, Operation, Output, Param, Request, Role, ValueId,
    };

    /// `out = all_reduce(x) + x`, or without the second use, which decides whether a value crosses the exchange.
    pub(crate) fn program(hidden: u32, ranks: u32, crossing: bool) -> Program {
        let node = |op| Node { op, name: None };
        let x =
            Param { name: "x".into(), role: Role::Tokens(Elem::Pattern), optional: false, in_place: None };
        let nodes = vec![
            node(Op::Param(ParamId(0))),
            node(Op::Neg(ValueId(0))),
            node(Op::call(Operation::AllReduce, &[ValueId(1).into()])),
            node(Op::Add(ValueId(2), ValueId(if crossing { 1 } else { 0 }))),
        ];
        let out = Output {
            name: "out".into(),
            value: ValueId(3),
            role: Role::Tokens(Elem::Pattern),
            in_place: None,
        };
        let graph = Graph {
            name: "sum".into(),
            params: vec![x].into(),
            nodes: nodes.into(),
            outputs: vec![out].into(),
            fixed: Fixed::default(),
        };
        let request = Request { hidden: Some(hidden), top_k: None, dtype: Some(DType::Bf16), ranks };
        graph.bind(&Dims::bind(&graph, &request, Presence::ALL).unwrap()).unwrap()
    }

    #[test]
    fn steps_are_the_planners_shapes() {
        for (hidden, ranks, per_device, forks) in [
            (7168, 8, 8, 0),
            (7168, 8, 1, 1),
            (2880, 2, 2, 2),
            (40, 4, 1, 0),
            (7168, 1, 1, 0),
            (1000, 1, 1, 0),
        ] {
            for (crossing, early_trigger) in [(false, false), (true, false), (false, true)] {
                let program = program(hidden, ranks, crossing);
                let placement = Placement {
                    device: DeviceModel::H200,
                    ranks_per_device: per_device,
                    forks,
                    early_trigger,
                    programmatic_launch: true,
                    one_grid: false,
                    schedules: Vec::new(),
                };
                let planner = placement.planner(&program);
                let most = planner.tokens_per_launch().min(3000);
                let variant = Variant::new(program.clone(), most, &placement, &[]);
                for tokens in 1..=most {
                    let step = variant.step(tokens);
                    assert_eq!(step.shape(tokens), planner.shape(tokens), "H={hidden} N={ranks} T={tokens}");
                    let entry = &variant.module().entries[step.entry];
                    assert_eq!(entry.geometry, step.geometry, "H={hidden} N={ranks} T={tokens}");
                }
                assert!(variant.steps.len() < 12, "a step is a range, not a token");
            }
        }
    }
}
