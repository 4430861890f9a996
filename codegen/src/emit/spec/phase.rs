//! The straight-line functions of one phase.

use super::{Cut, ident};
use crate::program::{Inst, Reg};
use std::fmt::Write;

impl Cut<'_> {
    pub(super) fn phase(&self, at: usize) -> String {
        let phase = &self.phases.phases[at];
        let mut text = format!(
            "\n  SEAMLINE_DEVICE void scalars(Int<{at}>, const Args& args, const Site& at, const Inputs& in, Scalars& scalar) {{\n"
        );
        for reg in &phase.scalars {
            writeln!(
                text,
                "    scalar.{} = {};{}",
                self.local(*reg),
                self.expression(*reg, at),
                self.comment(*reg)
            )
            .unwrap();
        }
        write!(
            text,
            "  }}\n  template <class Geo>\n  \
             SEAMLINE_DEVICE void phase(Int<{at}>, const Args& args, const Site& at, const Constants& constant, const Inputs& in,\n    \
             const Scalars& scalar, Live& live, Lane& exchanged, f32* partial) {{\n"
        )
        .unwrap();
        for reg in phase.lanes.iter().filter(|r| !self.phases.is_wire(self.program, **r)) {
            text += &self.statement(*reg, at);
        }
        for (i, reg) in phase.sums.iter().enumerate() {
            writeln!(text, "    partial[{i}] = {};", self.expression(*reg, at)).unwrap();
        }
        if self.phases.exchange == Some(at) {
            writeln!(text, "    exchanged = {};", self.read(self.before_wire(), at)).unwrap();
        }
        text += "  }\n";
        if !phase.sums.is_empty() {
            writeln!(text, "  SEAMLINE_DEVICE void totals(Int<{at}>, const f32* total, Scalars& scalar) {{")
                .unwrap();
            for (i, reg) in phase.sums.iter().enumerate() {
                writeln!(text, "    scalar.{} = total[{i}];", self.local(*reg)).unwrap();
            }
            text += "  }\n";
        }
        text
    }

    fn statement(&self, reg: Reg, at: usize) -> String {
        let name = self.local(reg);
        let lives = self.live.contains(&reg);
        match self.program.line(reg).inst {
            Inst::Store(value, output) => {
                let bound = &self.program.outputs[output.0 as usize];
                let to = match bound.in_place {
                    Some(p) => self.field(p),
                    None => format!("out_{}", ident::ascii(&bound.name)),
                };
                let value_line = self.program.line(value);
                let bits = format!("{}_bits", self.local(value));
                // What comes of the exchange is NaN by itself when it has failed.
                let bits = match self.program.exchanges() && !value_line.after_exchange {
                    true => format!("nan_if(at.failed, {bits})"),
                    false => bits,
                };
                format!(
                    "    store_lane<Geo::STREAMING, {}, HIDDEN>(args.{to} + at.token * HIDDEN, at, {bits});\n",
                    bound.dtype
                )
            }
            Inst::Round(_, dtype) => {
                let mut text = format!(
                    "    const Packed<{dtype}> {name}_bits = {};{}\n    const Lane {name} = unpack({name}_bits);\n",
                    self.expression(reg, at),
                    self.comment(reg)
                );
                if lives {
                    writeln!(text, "    live.{name} = {name}_bits;").unwrap();
                }
                text
            }
            _ => {
                let mut text =
                    format!("    const Lane {name} = {};{}\n", self.expression(reg, at), self.comment(reg));
                if lives {
                    writeln!(text, "    live.{name} = {name};").unwrap();
                }
                text
            }
        }
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

    fn comment(&self, reg: Reg) -> String {
        self.program.line(reg).name.as_ref().map_or(String::new(), |n| format!("  // {n}"))
    }
}
