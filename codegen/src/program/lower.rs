//! Graph to program.

use super::{BoundOutput, Inst, Line, Program, Reg, Space};
use crate::phases::Phases;
use crate::{BindError, Dims, Graph, Op, OutputId, ParamId, Role, ValueId};

/// Bytes of static shared memory that a block may have on every GPU.
const SHARED_BYTES: u32 = 48 << 10;

/// Binds `graph` to `dims` and spells out the rounding contract:
///
/// - a returned value is rounded to its storage dtype, stored, and read rounded by every later use;
/// - what goes into `all_reduce` is rounded to the wire once; with one rank there is no wire;
/// - `rms_norm` is a row sum of squares, `mean = sum / H`, `s = 1 / sqrt(mean + eps)`, `(x * s) * w`;
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
        let value = lowering.node(id)?;
        let value = lowering.returned(id, value)?;
        lowering.values.push(value);
    }
    let program = Program {
        name: graph.name.to_string(),
        dims: *dims,
        params: graph.params.to_vec(),
        outputs: graph
            .outputs
            .iter()
            .map(|o| BoundOutput {
                name: o.name.to_string(),
                dtype: o.elem.bind(dims.dtype),
                in_place: o.in_place,
            })
            .collect(),
        lines: lowering.lines,
    };
    row_sums_fit(&program)?;
    Ok(program)
}

/// `RowSums` in `row.cuh` has two f32 for each sum of a phase and each block of 256 channels, rounded up to four blocks.
fn row_sums_fit(program: &Program) -> Result<(), BindError> {
    let hidden = program.dims.hidden;
    let max = (SHARED_BYTES / (2 * 4 * hidden.div_ceil(256).next_multiple_of(4))) as usize;
    match Phases::of(program).most_sums() {
        got if got > max => Err(BindError::RowSums { pattern: program.name.clone(), hidden, got, max }),
        _ => Ok(()),
    }
}

struct Lowering<'a> {
    graph: &'a Graph,
    dims: &'a Dims,
    lines: Vec<Line>,
    /// Per node; `None` where an absent optional input left nothing.
    values: Vec<Option<Reg>>,
}

impl Lowering<'_> {
    fn present(&self, id: ParamId) -> bool {
        !self.graph.param(id).optional || self.dims.present.has(id)
    }

    fn push(&mut self, inst: Inst) -> Reg {
        let operands = || inst.operands().map(|r| &self.lines[r.0 as usize]);
        let space = match inst {
            Inst::Load(p) => match self.graph.param(p).role {
                Role::Channels(_) => Space::Channel,
                Role::PerToken(_) => Space::Token,
                Role::Scalar => Space::Uniform,
                _ => Space::TokenChannel,
            },
            Inst::Finalize { .. } => Space::TokenChannel,
            Inst::RowSum { .. } => Space::Token,
            _ => operands().map(|l| l.space).fold(Space::Uniform, Space::join),
        };
        let after_exchange = matches!(inst, Inst::AllReduce(_)) || operands().any(|l| l.after_exchange);
        self.lines.push(Line { inst, space, after_exchange, name: None });
        Reg(self.lines.len() as u32 - 1)
    }

    fn name(&mut self, reg: Reg, name: &str) {
        self.lines[reg.0 as usize].name.get_or_insert_with(|| name.to_owned());
    }

    fn value(&self, id: ValueId) -> Option<Reg> {
        self.values[id.0 as usize]
    }

    /// The operand of an operation that needs a value.
    fn need(&self, id: ValueId) -> Result<Reg, BindError> {
        self.value(id).ok_or_else(|| self.absent(id))
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

    fn node(&mut self, id: ValueId) -> Result<Option<Reg>, BindError> {
        let reg = match self.graph.op(id) {
            Op::Param(p) => {
                if !self.present(p) {
                    return Ok(None);
                }
                let reg = self.push(Inst::Load(p));
                let name = self.graph.param(p).name.clone();
                self.name(reg, &name);
                reg
            }
            Op::Literal(bits) => self.push(Inst::Const(bits)),
            Op::Finalize { rows, map, weights } => {
                let weights = self.present(weights).then_some(weights);
                self.push(Inst::Finalize { rows, map, weights })
            }
            Op::Neg(x) => match self.value(x) {
                Some(x) => self.push(Inst::Neg(x)),
                None => return Ok(None),
            },
            Op::Add(a, b) => match (self.value(a), self.value(b)) {
                (Some(a), Some(b)) => self.push(Inst::Add(a, b)),
                (one, other) => return Ok(one.or(other)),
            },
            Op::Sub(a, b) => match (self.value(a), self.value(b)) {
                (Some(a), Some(b)) => self.push(Inst::Sub(a, b)),
                (None, Some(b)) => self.push(Inst::Neg(b)),
                (a, None) => return Ok(a),
            },
            Op::Mul(a, b) => {
                let (a, b) = (self.need(a)?, self.need(b)?);
                self.push(Inst::Mul(a, b))
            }
            Op::AllReduce(x) => {
                let x = self.need(x)?;
                if self.dims.ranks == 1 {
                    return Ok(Some(x));
                }
                let wire = self.push(Inst::Round(x, self.dims.wire));
                self.push(Inst::AllReduce(wire))
            }
            Op::RmsNorm { x, w, eps } => {
                let (x, w, eps) = (self.need(x)?, self.need(w)?, self.need(eps)?);
                let sum = self.push(Inst::RowSum { x, squares: true });
                let mean = self.push(Inst::Mean(sum));
                let shifted = self.push(Inst::Add(mean, eps));
                let scale = self.push(Inst::InverseSqrt(shifted));
                let scaled = self.push(Inst::Mul(x, scale));
                self.push(Inst::Mul(scaled, w))
            }
        };
        if let Some(name) = self.graph.nodes[id.0 as usize].name.clone() {
            self.name(reg, &name);
        }
        Ok(Some(reg))
    }

    /// Rounds and stores `value` if the pattern returns it; answers what later uses read.
    fn returned(&mut self, id: ValueId, value: Option<Reg>) -> Result<Option<Reg>, BindError> {
        let mut value = value;
        let outputs = self.graph.outputs.iter().enumerate().filter(|(_, o)| o.value == id);
        for (i, output) in outputs {
            let unrounded = value.ok_or_else(|| self.absent(id))?;
            let rounded = self.push(Inst::Round(unrounded, output.elem.bind(self.dims.dtype)));
            self.name(rounded, &output.name);
            self.push(Inst::Store(rounded, OutputId(i as u32)));
            value = Some(rounded);
        }
        Ok(value)
    }
}
