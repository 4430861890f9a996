//! The straight-line functions: phases on one side of the exchange, with the row sums that end them.
//!
//! What is computed per channel becomes loops over a lane's channels, as few as possible: a loop ends where something
//! takes whole lanes, that is before a rounding, a store or a finalize.

use super::{Cut, ident, stride, unit};
use crate::program::{Class, Inst, Reduction, Reg};
use crate::schedule::LANE;
use crate::{DType, OutputId, ParamId};
use std::fmt::Write;
use std::ops::Range;

/// How the partial results of a row reduction are joined.
struct Fold {
    /// The template's name for it.
    join: &'static str,
    /// What its variables are called.
    name: &'static str,
}

/// Sums first.
const FOLDS: [Fold; 2] = [Fold { join: "Sum", name: "" }, Fold { join: "MaxMagnitude", name: "_max" }];

impl Fold {
    fn partial(&self, at: usize) -> String {
        format!("partial{}{at}", self.name)
    }

    fn total(&self, at: usize) -> String {
        format!("total{}{at}", self.name)
    }
}

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
            text += &match self.program.line(*reg).inst {
                Inst::Store(value, output) => self.store_element(value, output),
                _ => self.scalar(*reg, &self.expression(*reg, |r| self.read_scalar(r))),
            };
        }
        let reductions = [true, false].map(|adds| self.reductions(at, adds));
        for (fold, regs) in FOLDS.iter().zip(&reductions).filter(|(_, regs)| !regs.is_empty()) {
            let (n, partial, total) = (regs.len(), fold.partial(at), fold.total(at));
            writeln!(text, "    f32 {partial}[{n}][Geo::VECTORS], {total}[{n}];").unwrap();
        }
        text += &vectors(&self.lanes(at));
        for (fold, regs) in FOLDS.iter().zip(&reductions).filter(|(_, regs)| !regs.is_empty()) {
            let (partial, total) = (fold.partial(at), fold.total(at));
            writeln!(text, "    cluster.template reduce<{}>(row, {partial}, {total});", fold.join).unwrap();
            for (i, reg) in regs.iter().enumerate() {
                text += &self.scalar(*reg, &format!("{total}[{i}]"));
            }
        }
        let late = phase.vectors.iter().filter(|reg| self.stored_late(at, **reg));
        text + &vectors(&late.map(|reg| self.whole_lane(*reg)).collect::<String>())
    }

    /// Whether `reg` is a store that comes behind the row sums of its phase, which are what everybody waits for. What it
    /// stores is still there: a later phase reads it too.
    fn stored_late(&self, at: usize, reg: Reg) -> bool {
        let Inst::Store(value, _) = self.program.line(reg).inst else { return false };
        !self.phases.phases[at].reductions.is_empty() && self.live.contains(&value)
    }

    /// The row reductions that end phase `at`: those whose partial results are added, or the others.
    fn reductions(&self, at: usize, adds: bool) -> Vec<Reg> {
        let is = |reg: &&Reg| matches!(self.program.line(**reg).inst, Inst::Reduce(_, r) if r.adds() == adds);
        self.phases.phases[at].reductions.iter().filter(is).copied().collect()
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
        for reg in phase.vectors.iter().filter(early) {
            match self.program.line(*reg).inst.class() {
                Class::Vector => pieces.push(Piece::Whole(*reg)),
                _ => match pieces.last_mut() {
                    Some(Piece::Loop(lanes)) => lanes.regs.push(*reg),
                    _ => pieces.push(Piece::Loop(Lanes { regs: vec![*reg], last: false })),
                },
            }
        }
        if !phase.reductions.is_empty() || self.phases.exchange == Some(at) {
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
            for (fold, adds) in FOLDS.iter().zip([true, false]) {
                for (i, reg) in self.reductions(at, adds).into_iter().enumerate() {
                    let Inst::Reduce(x, reduction) = self.program.line(reg).inst else { continue };
                    let sum = format!("{}[{i}][v]", fold.partial(at));
                    let x = match self.program.dims.hidden.is_multiple_of(LANE) {
                        true => read(x),
                        false => format!("existing({}, j, row.channels[v])", read(x)),
                    };
                    writeln!(before, "{sum} = 0.0f;").unwrap();
                    let joined = match reduction {
                        Reduction::Sum => format!("{sum} + {x}"),
                        Reduction::SumOfSquares => format!("add_square({sum}, {x})"),
                        Reduction::MaxMagnitude => format!("max_magnitude({sum}, {x})"),
                    };
                    writeln!(body, "{sum} = {joined};").unwrap();
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
            matches!(self.program.line(user).inst, Inst::Reduce(..))
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
            Inst::Gather { rows, map, weights } => {
                let of_token = |p: ParamId| {
                    format!("args.{} + row.token * {}", self.field(p), stride(self.program.tensor(p)))
                };
                let weights = weights.map_or("NoWeights{}".into(), of_token);
                let (map, apart) = (of_token(map), stride(self.program.tensor(rows)));
                let rows = self.field(rows);
                format!(
                    "{}gather<Spec, Geo::BATCH, {apart}>({}, args.{rows}, args.rows{}, {map},\n  {weights}, row.lane[v], row.channels[v], &args.status->out_of_range);\n",
                    self.array(reg),
                    self.whole(reg),
                    &rows[2..],
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
            Some(value) if !matches!(self.program.line(x).inst, Inst::Exchange(_)) => {
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
            writeln!(
                text,
                "Packed<{}> {stored} = {bits};\nnan_if(row.failed, {stored});",
                bound.tensor.dtype
            )
            .unwrap();
            bits = stored;
        }
        text + &format!(
            "store_lane<Geo::STREAMING, {}>(args.{to} + row.token * {}, row.lane[v], row.channels[v], {bits});\n",
            unit(&bound.tensor),
            stride(&bound.tensor),
        )
    }

    /// Stores a value per token: the row's first thread does.
    fn store_element(&self, value: Reg, output: OutputId) -> String {
        let name = ident::ascii(&self.program.outputs[output.0 as usize].name);
        let mut read = self.read_scalar(value);
        // As `store` has it.
        if self.program.exchanges() && !self.program.line(value).after_exchange {
            read = format!("row.failed ? device::from_bits(CANONICAL_NAN) : {read}");
        }
        format!("    if (row.lane[0] == 0) store_element(args.out_{name} + row.token, {read});\n")
    }

    /// The value that the exchange rounds to the wire.
    fn before_wire(&self) -> Reg {
        let lines = &self.program.lines;
        let wire = lines.iter().find_map(|l| match l.inst {
            Inst::Exchange(wire) => Some(wire),
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
