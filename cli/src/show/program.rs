//! A program in words: what it reads and writes, and its instructions phase by phase.

use crate::table::Table;
use seamline_codegen::phases::Phases;
use seamline_codegen::program::{Class, Inst, Program, Reduction, Reg};
use seamline_codegen::{DType, ParamId};
use serde::Serialize;
use std::fmt::Write;

/// Name, dims, parameters and outputs.
pub fn signature(program: &Program) -> String {
    let dims = &program.dims;
    let mut text = format!("{}: hidden {}", program.name, dims.hidden);
    if dims.top_k > 0 {
        let _ = write!(text, ", top_k {}", dims.top_k);
    }
    let _ =
        write!(text, ", {} {}, {}", dims.ranks, if dims.ranks == 1 { "rank" } else { "ranks" }, dims.dtype);
    if program.exchanges() {
        let _ = write!(text, ", {} on the wire", dims.wire);
    }
    let mut table = Table::new(&["", "", "type", "shape", "dtype"]);
    for (i, param) in program.params.iter().enumerate() {
        let id = ParamId(i as u32);
        let present = !param.optional || dims.present.has(id);
        let (shape, dtype) = match present {
            true => (program.tensor(id).ty.shape(), program.param_dtype(id).name()),
            false => ("absent".to_owned(), ""),
        };
        table.row(["in", &param.name, param.role.type_name(), &shape, dtype]);
    }
    for output in &program.outputs {
        let place = match output.in_place {
            Some(id) => format!("in place of {}", program.param(id).name),
            None => String::new(),
        };
        let (ty, tensor) = (output.role.type_name(), &output.tensor);
        table.row(["out", &output.name, ty, &tensor.ty.shape(), tensor.dtype.name(), &place]);
    }
    format!("{text}\n\n{table}")
}

/// A piece of the kernel between two points at which the whole row, or the other ranks, are needed.
#[derive(Serialize)]
pub struct Phase {
    /// What ends it.
    until: &'static str,
    instructions: Vec<Instruction>,
}

/// What computes a value, or stores one.
#[derive(Serialize)]
struct Instruction {
    /// The value; none of a store.
    value: Option<String>,
    operation: String,
}

/// The instructions, in the phases that the kernel runs them in.
pub fn phases(program: &Program) -> Vec<Phase> {
    let cut = Phases::of(program);
    let names = Names::new(program);
    let phases = cut.phases.iter().enumerate().map(|(i, phase)| {
        let until = match (cut.exchange == Some(i), phase.reductions.is_empty()) {
            (true, _) => "the exchange",
            (false, false) => "the row reduction",
            (false, true) => "the end",
        };
        let in_phase = program
            .regs()
            .filter(|(reg, line)| cut.phase(*reg) == Some(i) && line.inst.class() != Class::Source);
        let instructions = in_phase.map(|(reg, _)| {
            let line = names.line(reg);
            match line.split_once(" = ") {
                Some((value, operation)) => {
                    Instruction { value: Some(value.to_owned()), operation: operation.to_owned() }
                }
                None => Instruction { value: None, operation: line },
            }
        });
        Phase { until, instructions: instructions.collect() }
    });
    phases.collect()
}

/// Phases, a line for each instruction.
pub fn text(phases: &[Phase]) -> String {
    let mut text = String::new();
    for (i, Phase { until, instructions }) in phases.iter().enumerate() {
        let _ = writeln!(text, "  phase {i}, until {until}");
        for Instruction { value, operation } in instructions {
            let value = value.as_ref().map(|value| format!("{value} = ")).unwrap_or_default();
            let _ = writeln!(text, "    {value}{operation}");
        }
    }
    text
}

/// What each value is called: the user's name where it is the only one with it, else its number.
struct Names<'a> {
    program: &'a Program,
    names: Vec<String>,
}

impl<'a> Names<'a> {
    fn new(program: &'a Program) -> Self {
        let called = |name: &str| program.lines.iter().filter(|l| l.name.as_deref() == Some(name)).count();
        let names = program.regs().map(|(reg, line)| match (line.inst, &line.name) {
            (Inst::Const(bits), _) => format!("{:?}", f32::from_bits(bits)),
            (Inst::Load(id), _) => program.param(id).name.to_string(),
            // The value before its rounding has the same name.
            (Inst::Round(..), Some(name)) => name.clone(),
            (_, Some(name)) if called(name) == 1 => name.clone(),
            _ => format!("v{}", reg.0),
        });
        Names { program, names: names.collect() }
    }

    fn name(&self, reg: Reg) -> &str {
        &self.names[reg.0 as usize]
    }

    fn param(&self, id: ParamId) -> &str {
        &self.program.param(id).name
    }

    fn line(&self, reg: Reg) -> String {
        let name = |reg| self.name(reg);
        let right = match self.program.line(reg).inst {
            // Their names say all.
            Inst::Load(id) => self.param(id).to_owned(),
            Inst::Const(bits) => format!("{:?}", f32::from_bits(bits)),
            Inst::Gather { rows, map, weights } => {
                let weights = weights.map_or("1", |id| self.param(id));
                format!("gather({}, {}, {weights})", self.param(rows), self.param(map))
            }
            Inst::Neg(x) => format!("-{}", name(x)),
            Inst::Add(a, b) => format!("{} + {}", name(a), name(b)),
            Inst::Sub(a, b) => format!("{} - {}", name(a), name(b)),
            Inst::Mul(a, b) => format!("{} * {}", name(a), name(b)),
            Inst::DivideBy(x, n) => format!("{} / {n}", name(x)),
            Inst::Reciprocal(x) => format!("1 / {}", name(x)),
            Inst::MaxMagnitude(a, b) => format!("max(|{}|, |{}|)", name(a), name(b)),
            Inst::InverseSqrt(x) => format!("1 / sqrt({})", name(x)),
            Inst::Round(x, DType::F32) => format!("{} as f32", name(x)),
            Inst::Round(x, dtype) => format!("round {} to {dtype}", name(x)),
            Inst::Exchange(x) => format!("sum over ranks of {}", name(x)),
            Inst::Reduce(x, Reduction::SumOfSquares) => format!("sum over channels of {}^2", name(x)),
            Inst::Reduce(x, Reduction::MaxMagnitude) => {
                format!("largest magnitude over channels of {}", name(x))
            }
            Inst::Reduce(x, Reduction::Sum) => format!("sum over channels of {}", name(x)),
            Inst::Store(x, id) => {
                let output = &self.program.outputs[id.0 as usize].name;
                return if name(x) == output {
                    format!("store {output}")
                } else {
                    format!("store {} to {output}", name(x))
                };
            }
        };
        format!("{} = {right}", name(reg))
    }
}
