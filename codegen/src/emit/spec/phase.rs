//! The straight-line functions: phases on one side of the exchange, with the row sums that end them.
//!
//! What is computed per channel becomes loops over a lane's channels, as few as possible: a loop ends where something
//! takes whole lanes, that is before a rounding, a store or a finalize.

use super::{Cut, ident};
use crate::program::{Inst, Reg};
use crate::schedule::LANE;
use crate::{DType, OutputId};
use std::fmt::Write;
use std::ops::Range;

/// The values that one loop over channels computes.
#[derive(Default)]
pub(super) struct Lanes {
    regs: Vec<Reg>,
    /// Whether it is the last one of its phase, and takes what the phase ends with.
    last: bool,
}

impl Lanes {
    pub(super) fn computes(&self, reg: Reg) -> bool {
        self.regs.contains(&reg)
    }
}

/// A piece of a phase.
enum Piece {
    Loop(Lanes),
    /// What takes whole lanes.
    Whole(Reg),
}

impl Cut<'_> {
    /// The function `name`, of `phases`.
    pub(super) fn function(&self, name: &str, phases: Range<usize>) -> String {
        let mut text = format!(
            "\n  template <class Geo>\n  SEAMLINE_DEVICE void {name}(const Args& args, Row<Geo>& row, Cluster<Spec, Geo>& cluster) {{\n"
        );
        phases.for_each(|at| text += &self.phase(at));
        text + "  }\n"
    }

    fn phase(&self, at: usize) -> String {
        let phase = &self.phases.phases[at];
        let mut text = String::new();
        for reg in &phase.scalars {
            text += &self.scalar(*reg, &self.expression(*reg, |r| self.read_scalar(r)));
        }
        let sums = phase.sums.len();
        if sums > 0 {
            writeln!(text, "    f32 partial{at}[{sums}][Geo::VECTORS], total{at}[{sums}];").unwrap();
        }
        text += &vectors(&self.lanes(at));
        if sums > 0 {
            writeln!(text, "    cluster.reduce(row, partial{at}, total{at});").unwrap();
        }
        for (i, reg) in phase.sums.iter().enumerate() {
            text += &self.scalar(*reg, &format!("total{at}[{i}]"));
        }
        let late = phase.lanes.iter().filter(|reg| self.stored_late(at, **reg));
        text + &vectors(&late.map(|reg| self.whole_lane(*reg)).collect::<String>())
    }

    /// Whether `reg` is a store that comes behind the row sums of its phase, which are what everybody waits for. What it
    /// stores is still there: a later phase reads it too.
    fn stored_late(&self, at: usize, reg: Reg) -> bool {
        let Inst::Store(value, _) = self.program.line(reg).inst else { return false };
        !self.phases.phases[at].sums.is_empty() && self.live.contains(&value)
    }

    /// Gives a value per token or launch its name.
    fn scalar(&self, reg: Reg, value: &str) -> String {
        let target = match self.carried(reg) {
            true => self.read_scalar(reg),
            false => format!("const f32 {}", self.local(reg)),
        };
        format!("    {target} = {value};{}\n", self.comment(reg))
    }

    /// What phase `at` does with each lane.
    fn lanes(&self, at: usize) -> String {
        let phase = &self.phases.phases[at];
        let mut pieces = Vec::new();
        let early = |r: &&Reg| !self.phases.is_wire(self.program, **r) && !self.stored_late(at, **r);
        for reg in phase.lanes.iter().filter(early) {
            match self.program.line(*reg).inst {
                Inst::Finalize { .. } | Inst::Round(..) | Inst::Store(..) => pieces.push(Piece::Whole(*reg)),
                _ => match pieces.last_mut() {
                    Some(Piece::Loop(lanes)) => lanes.regs.push(*reg),
                    _ => pieces.push(Piece::Loop(Lanes { regs: vec![*reg], last: false })),
                },
            }
        }
        if !phase.sums.is_empty() || self.phases.exchange == Some(at) {
            if !matches!(pieces.last(), Some(Piece::Loop(_))) {
                pieces.push(Piece::Loop(Lanes::default()));
            }
            if let Some(Piece::Loop(lanes)) = pieces.last_mut() {
                lanes.last = true;
            }
        }
        let print = |piece: &Piece| match piece {
            Piece::Loop(lanes) => self.channels(at, lanes),
            Piece::Whole(reg) => self.whole_lane(*reg),
        };
        pieces.iter().map(print).collect()
    }

    /// A loop over a lane's channels.
    fn channels(&self, at: usize, lanes: &Lanes) -> String {
        let (mut before, mut body) = (String::new(), String::new());
        let read = |reg| self.read(reg, at, lanes);
        for reg in &lanes.regs {
            let target = match self.outlives(*reg, at, lanes) {
                false => format!("const f32 {}", self.local(*reg)),
                true => {
                    before += &self.array(*reg);
                    format!("{}[j]", self.whole(*reg))
                }
            };
            writeln!(body, "{target} = {};{}", self.expression(*reg, read), self.comment(*reg)).unwrap();
        }
        if lanes.last {
            for (i, reg) in self.phases.phases[at].sums.iter().enumerate() {
                let Inst::RowSum { x, squares } = self.program.line(*reg).inst else { continue };
                let sum = format!("partial{at}[{i}][v]");
                let x = match self.program.dims.hidden.is_multiple_of(LANE) {
                    true => read(x),
                    false => format!("existing({}, j, row.channels[v])", read(x)),
                };
                writeln!(before, "{sum} = 0.0f;").unwrap();
                match squares {
                    true => writeln!(body, "{sum} = add_square({sum}, {x});").unwrap(),
                    false => writeln!(body, "{sum} = {sum} + {x};").unwrap(),
                }
            }
            if self.phases.exchange == Some(at) {
                writeln!(body, "row.exchanged[v][j] = {};", read(self.before_wire())).unwrap();
            }
        }
        before + "SEAMLINE_UNROLL\nfor (int j = 0; j < LANE; j++) {\n" + &indented(&body) + "}\n"
    }

    /// Whether the channels of `reg` are read outside the loop that computes them.
    pub(super) fn outlives(&self, reg: Reg, at: usize, lanes: &Lanes) -> bool {
        let ends = |user: Reg| {
            matches!(self.program.line(user).inst, Inst::RowSum { .. })
                || self.phases.is_wire(self.program, user)
        };
        self.live.contains(&reg)
            || self.program.regs().any(|(user, line)| {
                line.inst.operands().any(|o| o == reg)
                    && self.phases.phase(user) == Some(at)
                    && !lanes.regs.contains(&user)
                    && !(lanes.last && ends(user))
            })
    }

    /// Declares what holds the channels of `reg`, if it is not in the row.
    fn array(&self, reg: Reg) -> String {
        match self.live.contains(&reg) {
            true => String::new(),
            false => format!("f32 {}[LANE];\n", self.local(reg)),
        }
    }

    /// What takes whole lanes.
    fn whole_lane(&self, reg: Reg) -> String {
        match self.program.line(reg).inst {
            Inst::Finalize { rows, map, weights } => {
                let weights = match weights {
                    Some(w) => format!("args.{} + row.token * TOP_K", self.field(w)),
                    None => "NoWeights{}".into(),
                };
                let rows = self.field(rows);
                format!(
                    "{}finalize<Spec, Geo::BATCH>({}, args.{rows}, args.rows{}, args.{} + row.token * TOP_K,\n  {weights}, row.lane[v], row.channels[v], &args.status->out_of_range);\n",
                    self.array(reg),
                    self.whole(reg),
                    &rows[2..],
                    self.field(map)
                )
            }
            Inst::Round(x, dtype) => self.round(reg, x, dtype),
            Inst::Store(value, output) => self.store(value, output),
            inst => unreachable!("{inst:?} is computed channel by channel"),
        }
    }

    fn round(&self, reg: Reg, x: Reg, dtype: DType) -> String {
        let (name, comment) = (self.whole(reg), self.comment(reg));
        let mut text = match self.live.contains(&reg) {
            true => String::new(),
            false => format!("Packed<{dtype}> {name};\n"),
        };
        let from = match self.read_kept(x) {
            Some(value) if !matches!(self.program.line(x).inst, Inst::AllReduce(_)) => {
                let wide = format!("{}_wide", self.local(reg));
                write!(
                    text,
                    "f32 {wide}[LANE];\nSEAMLINE_UNROLL\nfor (int j = 0; j < LANE; j++) {wide}[j] = {value};\n"
                )
                .unwrap();
                wide
            }
            _ => self.whole(x),
        };
        text + &format!("pack({name}, {from});{comment}\n")
    }

    fn store(&self, value: Reg, output: OutputId) -> String {
        let bound = &self.program.outputs[output.0 as usize];
        let to = match bound.in_place {
            Some(p) => self.field(p),
            None => format!("out_{}", ident::ascii(&bound.name)),
        };
        let mut bits = self.whole(value);
        let mut text = String::new();
        // What comes of the exchange is NaN by itself when it has failed.
        if self.program.exchanges() && !self.program.line(value).after_exchange {
            let stored = format!("stored{}", output.0);
            writeln!(text, "Packed<{}> {stored} = {bits};\nnan_if(row.failed, {stored});", bound.dtype)
                .unwrap();
            bits = stored;
        }
        text + &format!(
            "store_lane<Geo::STREAMING, HIDDEN>(args.{to} + row.token * HIDDEN, row.lane[v], row.channels[v], {bits});\n"
        )
    }

    /// The value that the exchange rounds to the wire.
    fn before_wire(&self) -> Reg {
        let lines = &self.program.lines;
        let wire = lines.iter().find_map(|l| match l.inst {
            Inst::AllReduce(wire) => Some(wire),
            _ => None,
        });
        match wire.map(|w| self.program.line(w).inst) {
            Some(Inst::Round(x, _)) => x,
            other => unreachable!("what is exchanged is rounded to the wire, not {other:?}"),
        }
    }
}

/// `statements` for each of a thread's lanes.
pub(super) fn vectors(statements: &str) -> String {
    match statements.is_empty() {
        true => String::new(),
        false => {
            let body = indented(&indented(&indented(statements)));
            format!("    SEAMLINE_UNROLL\n    for (int v = 0; v < Geo::VECTORS; v++) {{\n{body}    }}\n")
        }
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}
