//! Graph to program.

use super::{BoundOutput, Inst, Line, Program, Reg, Space};
use crate::graph::Operand;
use crate::phases::Phases;
use crate::{BindError, Call, Dims, Graph, Op, OutputId, Param, ParamId, ValueId};

/// Bytes of static shared memory that a block may have on every GPU.
const SHARED_BYTES: u32 = 48 << 10;

/// Binds `graph` to `dims` and spells out the rounding contract:
///
/// - a returned value is rounded to its storage dtype, stored, and read rounded by every later use;
/// - a call is what the file of its operation ([`crate::op`]) makes of it: what ranks exchange, say, is rounded to the
///   wire once, and with one rank there is no wire;
/// - an absent optional input adds nothing: no instruction exists for it.
///
/// # Errors
/// More row sums at once than shared memory has room for.
///
/// # Panics
/// It may, for a graph that [`check`](crate::check::check) refuses.
pub fn lower(graph: &Graph, dims: &Dims) -> Result<Program, BindError> {
    let mut lowering =
        Lowering { graph, dims, lines: Vec::new(), values: Vec::with_capacity(graph.nodes.len()) };
    for (id, _) in graph.values() {
        let mut results = lowering.node(id)?;
        if let [value] = results.as_mut_slice() {
            *value = lowering.returned(id, *value)?;
        }
        lowering.values.push(results);
    }
    let mut next = graph.params.len();
    let outputs = graph.outputs.iter().map(|o| {
        // What is in place lies where its parameter does; the others follow the parameters.
        let at = o.in_place.map_or(next, |p| p.0 as usize);
        next += usize::from(o.in_place.is_none());
        let tensor = o.role.tensor().bind(dims, dims.strides.of(at));
        BoundOutput { name: o.name.to_string(), role: o.role, tensor, in_place: o.in_place }
    });
    let tensor = |(i, p): (usize, &Param)| p.role.tensor().bind(dims, dims.strides.of(i));
    let program = Program {
        name: graph.name.to_string(),
        dims: *dims,
        params: graph.params.to_vec(),
        tensors: graph.params.iter().enumerate().map(tensor).collect(),
        outputs: outputs.collect(),
        lines: lowering.lines,
    };
    row_sums_fit(&program)?;
    Ok(program)
}

/// `RowSums` in `row.cuh` has two f32 for each sum of a phase and each block of 256 channels, rounded up to four blocks.
fn row_sums_fit(program: &Program) -> Result<(), BindError> {
    let hidden = program.dims.hidden;
    let max = (SHARED_BYTES / (2 * 4 * hidden.div_ceil(256).next_multiple_of(4))) as usize;
    match Phases::of(program).most_reductions() {
        got if got > max => Err(BindError::RowSums { pattern: program.name.clone(), hidden, got, max }),
        _ => Ok(()),
    }
}

/// A graph on its way to a program: what [operations](crate::op) write their instructions to.
pub(crate) struct Lowering<'a> {
    graph: &'a Graph,
    dims: &'a Dims,
    lines: Vec<Line>,
    /// Per node its results; `None` where an absent optional input left nothing.
    values: Vec<Vec<Option<Reg>>>,
}

impl Lowering<'_> {
    /// What the program is specialised for.
    pub(crate) fn dims(&self) -> &Dims {
        self.dims
    }

    /// Whether parameter `id` exists in this variant.
    pub(crate) fn present(&self, id: ParamId) -> bool {
        !self.graph.param(id).optional || self.dims.present.has(id)
    }

    /// Operand `i` of `call`, which takes a parameter there.
    pub(crate) fn param(&self, call: &Call, i: usize) -> ParamId {
        match call.operands().nth(i) {
            Some(Operand::Param(id)) => id,
            other => unreachable!("a checked call has a parameter there, not {other:?}"),
        }
    }

    /// Operand `i` of `call`, which takes a value there.
    pub(crate) fn value(&self, call: &Call, i: usize) -> Result<Reg, BindError> {
        match call.operands().nth(i) {
            Some(Operand::Value(id)) => self.need(id),
            other => unreachable!("a checked call has a value there, not {other:?}"),
        }
    }

    /// `1 / sqrt(squares / H + eps)`: what a norm multiplies by.
    pub(crate) fn inverse_deviation(&mut self, squares: Reg, eps: Reg) -> Reg {
        let mean = self.push(Inst::DivideBy(squares, self.dims.hidden));
        let shifted = self.push(Inst::Add(mean, eps));
        self.push(Inst::InverseSqrt(shifted))
    }

    /// Appends `inst`; answers its value.
    pub(crate) fn push(&mut self, inst: Inst) -> Reg {
        let operands = || inst.operands().map(|r| &self.lines[r.0 as usize]);
        let space = match inst {
            Inst::Load(p) => self.graph.param(p).role.tensor().space().unwrap_or(Space::TokenChannel),
            Inst::Gather { .. } => Space::TokenChannel,
            Inst::Reduce(..) => Space::Token,
            _ => operands().map(|l| l.space).fold(Space::Uniform, Space::join),
        };
        let after_exchange = matches!(inst, Inst::Exchange(_)) || operands().any(|l| l.after_exchange);
        self.lines.push(Line { inst, space, after_exchange, name: None });
        Reg(self.lines.len() as u32 - 1)
    }

    fn name(&mut self, reg: Reg, name: &str) {
        self.lines[reg.0 as usize].name.get_or_insert_with(|| name.to_owned());
    }

    fn found(&self, id: ValueId) -> Option<Reg> {
        self.values[id.0 as usize].first().copied().flatten()
    }

    /// The operand of an operation that needs a value.
    fn need(&self, id: ValueId) -> Result<Reg, BindError> {
        self.found(id).ok_or_else(|| self.absent(id))
    }

    fn absent(&self, id: ValueId) -> BindError {
        let node = &self.graph.nodes[id.0 as usize];
        let value = match (&node.name, node.op) {
            (Some(name), _) => name.to_string(),
            (None, Op::Param(p)) => self.graph.param(p).name.to_string(),
            (None, op) => format!("{op:?}"),
        };
        BindError::AbsentValue { pattern: self.graph.name.to_string(), value }
    }

    fn node(&mut self, id: ValueId) -> Result<Vec<Option<Reg>>, BindError> {
        let reg = match self.graph.op(id) {
            Op::Param(p) => {
                if !self.present(p) {
                    return Ok(vec![None]);
                }
                let reg = self.push(Inst::Load(p));
                let name = self.graph.param(p).name.clone();
                self.name(reg, &name);
                reg
            }
            Op::Literal(bits) => self.push(Inst::Const(bits)),
            Op::Neg(x) => match self.found(x) {
                Some(x) => self.push(Inst::Neg(x)),
                None => return Ok(vec![None]),
            },
            Op::Add(a, b) => match (self.found(a), self.found(b)) {
                (Some(a), Some(b)) => self.push(Inst::Add(a, b)),
                (one, other) => return Ok(vec![one.or(other)]),
            },
            Op::Sub(a, b) => match (self.found(a), self.found(b)) {
                (Some(a), Some(b)) => self.push(Inst::Sub(a, b)),
                (None, Some(b)) => self.push(Inst::Neg(b)),
                (a, None) => return Ok(vec![a]),
            },
            Op::Mul(a, b) => {
                let (a, b) = (self.need(a)?, self.need(b)?);
                self.push(Inst::Mul(a, b))
            }
            Op::Call(call) => {
                let results = (call.operation.spec().lower)(self, &call)?;
                match results[..] {
                    [reg] => reg,
                    _ => return Ok(results.into_iter().map(Some).collect()),
                }
            }
            Op::Result(of, index) => match self.values[of.0 as usize].get(index as usize) {
                Some(Some(reg)) => *reg,
                _ => return Err(self.absent(of)),
            },
        };
        if let Some(name) = self.graph.nodes[id.0 as usize].name.clone() {
            self.name(reg, &name);
        }
        Ok(vec![Some(reg)])
    }

    /// Rounds and stores `value` if the pattern returns it; answers what later uses read.
    fn returned(&mut self, id: ValueId, value: Option<Reg>) -> Result<Option<Reg>, BindError> {
        let mut value = value;
        let outputs = self.graph.outputs.iter().enumerate().filter(|(_, o)| o.value == id);
        for (i, output) in outputs {
            let unrounded = value.ok_or_else(|| self.absent(id))?;
            let rounded = self.push(Inst::Round(unrounded, output.role.tensor().elem.bind(self.dims.dtype)));
            self.name(rounded, &output.name);
            self.push(Inst::Store(rounded, OutputId(i as u32)));
            value = Some(rounded);
        }
        Ok(value)
    }
}
