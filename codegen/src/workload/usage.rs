//! What a program does with its parameters, as far as their values must know it.

use crate::ParamId;
use crate::program::{Inst, Program};

/// Sets of parameters; a pattern has at most [`MAX_ARGS`](crate::MAX_ARGS) of them, 32.
pub(super) struct Usage {
    after_exchange: u32,
    epsilons: u32,
}

impl Usage {
    pub(super) fn of(program: &Program) -> Usage {
        let mut usage = Usage { after_exchange: 0, epsilons: 0 };
        // Per line, the parameters that its value depends on, other than through an exchange.
        let mut feeds: Vec<u32> = Vec::with_capacity(program.lines.len());
        for line in &program.lines {
            let operands = || line.inst.operands().map(|reg| (reg, program.line(reg)));
            let through = operands().fold(0, |set, (reg, _)| set | feeds[reg.0 as usize]);
            feeds.push(match line.inst {
                Inst::Exchange(_) => 0,
                inst => inst.params().fold(through, |set, p| set | bit(p)),
            });
            if line.after_exchange && !matches!(line.inst, Inst::Exchange(_)) {
                usage.after_exchange |= through;
            }
            if let Inst::InverseSqrt(shifted) = line.inst
                && let Inst::Add(_, epsilon) = program.line(shifted).inst
                && let Inst::Load(p) = program.line(epsilon).inst
            {
                usage.epsilons |= bit(p);
            }
        }
        usage
    }

    /// Whether it is used after the exchange, so that rule 9 of the contract holds for it.
    pub(super) fn equal_on_all_ranks(&self, id: ParamId) -> bool {
        self.after_exchange & bit(id) != 0
    }

    /// Whether it is what a norm adds to the mean of squares.
    pub(super) fn is_epsilon(&self, id: ParamId) -> bool {
        self.epsilons & bit(id) != 0
    }
}

fn bit(id: ParamId) -> u32 {
    1u32.checked_shl(id.0).unwrap_or(0)
}
