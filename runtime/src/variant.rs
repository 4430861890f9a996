//! A kernel for one set of optional inputs: its program, its source, and how launches are shaped.

use crate::region::RegionKey;
use seamline_codegen::emit::{Module, Target, emit};
use seamline_codegen::schedule::{DeviceModel, Geometry, LaunchShape, Planner, Range, Schedule};
use seamline_codegen::{Graph, ParamId, Presence, Program};
use std::sync::OnceLock;

/// A kernel for one set of optional inputs.
#[derive(Debug)]
pub struct Variant {
    program: Program,
    present: Presence,
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
    pub(crate) fn shape(&self, tokens: u64) -> LaunchShape {
        LaunchShape { geometry: self.geometry, clusters: self.clusters.unwrap_or(tokens as u32) }
    }
}

/// What shapes depend on beside the program.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) device: DeviceModel,
    pub(crate) ranks_per_device: u32,
    /// Forks whose kernels poll beside this one.
    pub(crate) forks: u32,
    pub(crate) early_trigger: bool,
    /// All ranks of a device in one grid.
    pub(crate) one_grid: bool,
    /// Schedules chosen by hand, from so many tokens on.
    pub(crate) schedules: Vec<(u64, Schedule)>,
}

impl Site {
    pub(crate) fn planner<'a>(&self, program: &'a Program) -> Planner<'a> {
        Planner::new(program, self.device, self.ranks_per_device, self.early_trigger)
            .with_forks(self.forks)
            .with_schedules(self.schedules.iter().copied())
    }
}

impl Variant {
    /// For launches of up to `most` tokens each.
    pub(crate) fn new(
        program: Program,
        present: Presence,
        most: u64,
        site: &Site,
        regions: &[RegionKey],
    ) -> Variant {
        let planner = site.planner(&program);
        let geometries = planner.geometries(most);
        let steps = steps(&planner, &geometries, most, regions);
        let target = Target { geometries, early_trigger: site.early_trigger, one_grid: site.one_grid };
        Variant { program, present, target, module: OnceLock::new(), steps }
    }

    /// The graph bound to this variant's dims.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The generated source and its entries.
    pub fn module(&self) -> &Module {
        self.module.get_or_init(|| emit(&self.program, &self.target))
    }

    /// Which optional inputs it has, in words.
    pub fn describe(&self, graph: &Graph) -> String {
        describe(graph, self.present)
    }

    pub(crate) fn present(&self) -> Presence {
        self.present
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

/// The ranges of token counts, with what a launch needs to know of each.
fn steps(planner: &Planner<'_>, geometries: &[Geometry], most: u64, regions: &[RegionKey]) -> Vec<Step> {
    let step = |range: Range| {
        let clusters = |tokens: u64| planner.shape(tokens).clusters;
        let one_per_token =
            u64::from(clusters(range.from)) == range.from && u64::from(clusters(range.up_to)) == range.up_to;
        Step {
            up_to: range.up_to,
            entry: geometries.iter().position(|g| *g == range.geometry).unwrap_or(0),
            region: regions.iter().position(|r| r.schedule == range.geometry.schedule).unwrap_or(0),
            geometry: range.geometry,
            clusters: (!one_per_token).then_some(clusters(range.from)),
        }
    };
    planner.ranges(most).into_iter().map(step).collect()
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
mod tests {
    use super::*;
    use seamline_codegen::{DType, Dims, Elem, Fixed, Node, Op, Output, Param, Request, Role, ValueId};

    /// `out = all_reduce(x) + x`, or without the second use, which decides whether a value crosses the exchange.
    fn program(hidden: u32, ranks: u32, crossing: bool) -> Program {
        let node = |op| Node { op, name: None };
        let x =
            Param { name: "x".into(), role: Role::Tokens(Elem::Pattern), optional: false, in_place: None };
        let nodes = vec![
            node(Op::Param(ParamId(0))),
            node(Op::Neg(ValueId(0))),
            node(Op::AllReduce(ValueId(1))),
            node(Op::Add(ValueId(2), ValueId(if crossing { 1 } else { 0 }))),
        ];
        let out = Output { name: "out".into(), value: ValueId(3), elem: Elem::Pattern, in_place: None };
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
                let site = Site {
                    device: DeviceModel::H200,
                    ranks_per_device: per_device,
                    forks,
                    early_trigger,
                    one_grid: false,
                    schedules: Vec::new(),
                };
                let planner = site.planner(&program);
                let most = planner.tokens_per_launch().min(3000);
                let variant = Variant::new(program.clone(), Presence::ALL, most, &site, &[]);
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
