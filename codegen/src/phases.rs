//! Cuts a program into phases: straight-line pieces between row sums and the exchange.
//!
//! A phase can run lane by lane; a row sum or the exchange that ends it needs the whole row, or the other ranks. Patterns
//! with norms before the collective, or several in a row, just have more phases.

use crate::program::{Class, Inst, Program, Reg};

/// A program's cut into phases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phases {
    /// In order; at least one.
    pub phases: Vec<Phase>,
    /// The phase that ends with the exchange.
    pub exchange: Option<usize>,
    /// By register: its phase; `None` for values that nothing needs.
    of: Vec<Option<usize>>,
    /// By register: the last phase that reads it.
    last_use: Vec<Option<usize>>,
}

/// One phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// Values per token or launch, and nothing else; computed once per thread.
    pub scalars: Vec<Reg>,
    /// Values per channel, and stores.
    pub vectors: Vec<Reg>,
    /// The row reductions that end it.
    pub reductions: Vec<Reg>,
}

impl Phases {
    /// Cuts `program`.
    pub fn of(program: &Program) -> Phases {
        let needed = needed(program);
        let earliest = earliest(program);
        let of = sink(program, &needed, &earliest);
        let count = 1 + program
            .regs()
            .filter(|(r, _)| needed[r.0 as usize])
            .map(|(r, line)| of[r.0 as usize].unwrap_or(0) + usize::from(line.inst.ends_phase()))
            .max()
            .unwrap_or(0);
        let mut phases = vec![Phase::default(); count];
        let mut exchange = None;
        let mut last_use = vec![None; program.lines.len()];
        for (reg, line) in program.regs() {
            let Some(at) = of[reg.0 as usize] else { continue };
            for operand in line.inst.operands() {
                let last = &mut last_use[operand.0 as usize];
                *last = (*last).max(Some(at));
            }
            match line.inst.class() {
                Class::Row => phases[at].reductions.push(reg),
                Class::Exchange => exchange = Some(at),
                Class::Source => {}
                Class::Vector | Class::Elementwise if line.space.has_channels() => {
                    phases[at].vectors.push(reg);
                }
                Class::Vector | Class::Elementwise => phases[at].scalars.push(reg),
            }
        }
        Phases { phases, exchange, of, last_use }
    }

    /// The phase whose code computes `reg`; for a row sum or an exchange, the phase that it ends.
    pub fn phase(&self, reg: Reg) -> Option<usize> {
        self.of[reg.0 as usize]
    }

    /// The last phase that reads `reg`.
    pub fn last_use(&self, reg: Reg) -> Option<usize> {
        self.last_use[reg.0 as usize]
    }

    /// The most row reductions that end one phase.
    pub fn most_reductions(&self) -> usize {
        self.phases.iter().map(|p| p.reductions.len()).max().unwrap_or(0)
    }

    /// The computed values per channel that a later phase reads.
    pub fn live(&self, program: &Program) -> Vec<Reg> {
        self.phases
            .iter()
            .enumerate()
            .flat_map(|(i, p)| p.vectors.iter().map(move |r| (i, *r)))
            .filter(|(i, r)| {
                !matches!(program.line(*r).inst, Inst::Store(..)) && self.last_use(*r) > Some(*i)
            })
            .map(|(_, r)| r)
            .collect()
    }

    /// Whether something known before the exchange is needed after it, and memory no longer has it: a computed value, or an input
    /// that is by then overwritten in place. Then a thread must keep one token in registers from sending to receiving, and cannot
    /// send several first.
    pub fn crosses_exchange(&self, program: &Program) -> bool {
        let Some(exchange) = self.exchange else { return false };
        let overwritten = |param| {
            program.regs().any(|(reg, line)| {
                matches!(line.inst, Inst::Store(_, output) if program.outputs[output.0 as usize].in_place == Some(param))
                    && self.phase(reg) <= Some(exchange)
            })
        };
        program.regs().any(|(reg, line)| match line.inst {
            Inst::Load(param) => self.last_use(reg) > Some(exchange) && overwritten(param),
            _ => self.carried(program, reg),
        })
    }

    /// Whether the value of `reg` is computed up to the exchange, and read after it.
    pub fn carried(&self, program: &Program, reg: Reg) -> bool {
        let inst = program.line(reg).inst;
        self.exchange.is_some()
            && !matches!(inst, Inst::Load(_) | Inst::Const(_) | Inst::Exchange(_))
            && self.phase(reg) <= self.exchange
            && self.last_use(reg) > self.exchange
            && !self.is_wire(program, reg)
    }

    /// Whether `reg` is the rounding to the wire, which the exchange itself does.
    pub fn is_wire(&self, program: &Program, reg: Reg) -> bool {
        program.lines.iter().any(|l| l.inst == Inst::Exchange(reg))
    }
}

/// What a store depends on.
fn needed(program: &Program) -> Vec<bool> {
    let mut needed = vec![false; program.lines.len()];
    for (reg, line) in program.regs().collect::<Vec<_>>().into_iter().rev() {
        if matches!(line.inst, Inst::Store(..)) {
            needed[reg.0 as usize] = true;
        }
        if needed[reg.0 as usize] {
            line.inst.operands().for_each(|o| needed[o.0 as usize] = true);
        }
    }
    needed
}

/// The first phase in which each line's operands are all known.
fn earliest(program: &Program) -> Vec<usize> {
    let mut earliest: Vec<usize> = Vec::with_capacity(program.lines.len());
    for line in &program.lines {
        let at = line
            .inst
            .operands()
            .map(|o| earliest[o.0 as usize] + usize::from(program.line(o).inst.ends_phase()))
            .max()
            .unwrap_or(0);
        earliest.push(at);
    }
    earliest
}

/// Moves what depends on inputs alone to the first phase that reads it, so that the input stays packed until then.
fn sink(program: &Program, needed: &[bool], earliest: &[usize]) -> Vec<Option<usize>> {
    let mut from_inputs = vec![false; program.lines.len()];
    for (reg, line) in program.regs() {
        from_inputs[reg.0 as usize] = match line.inst.class() {
            Class::Source => true,
            Class::Elementwise => line.inst.operands().all(|o| from_inputs[o.0 as usize]),
            // A rounded value is about to be stored: in place, that must not overtake the loads.
            Class::Vector | Class::Row | Class::Exchange => false,
        };
    }
    let mut first_use: Vec<Option<usize>> = vec![None; program.lines.len()];
    let mut of = vec![None; program.lines.len()];
    for (reg, line) in program.regs().collect::<Vec<_>>().into_iter().rev() {
        let i = reg.0 as usize;
        if !needed[i] {
            continue;
        }
        let at = match (from_inputs[i], first_use[i]) {
            (true, Some(first)) => first.max(earliest[i]),
            _ => earliest[i],
        };
        of[i] = Some(at);
        for o in line.inst.operands() {
            let first = &mut first_use[o.0 as usize];
            *first = Some(first.map_or(at, |f| f.min(at)));
        }
    }
    of
}
