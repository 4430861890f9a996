//! The kernel's `Args`: words in the order of [`abi::slots`](seamline_codegen::abi::slots).

use crate::args::signature::{Argument, Kind};
use arrayvec::ArrayVec;
use seamline_codegen::abi::Slot;
use seamline_codegen::{MAX_ARGS, MAX_RANKS, ParamId, Tensor};

/// Most words of an `Args`: an address and a row count per argument, the tokens, the status, and the
/// exchange's.
pub(crate) const MAX_WORDS: usize = 2 * MAX_ARGS + MAX_RANKS as usize + 8;

/// A packed `Args`.
pub(crate) type Words = ArrayVec<u64, MAX_WORDS>;

/// An argument's place, once it is known: per argument of the bundle.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Value {
    /// Its address, or a scalar's bits.
    pub(crate) word: u64,
    /// Elements that there are.
    pub(crate) len: u64,
}

/// Per argument.
pub(crate) type Values = [Value; MAX_ARGS];

/// What an exchanging kernel is told beside its arguments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    pub(crate) rank: u32,
    pub(crate) status: u64,
    pub(crate) host_status: u64,
    /// By rank.
    pub(crate) regions: ArrayVec<u64, { MAX_RANKS as usize }>,
    pub(crate) epochs: u64,
    pub(crate) generation_bytes: u64,
    pub(crate) timeout_ns: u64,
}

/// How a variant's `Args` is filled: what never changes, and the words that a launch writes.
#[derive(Debug)]
pub(crate) struct Packing {
    template: Box<[u64]>,
    fills: Box<[(usize, Fill)]>,
}

#[derive(Clone, Copy, Debug)]
enum Fill {
    /// The argument's word, plus so many bytes per token that came before.
    Word {
        argument: usize,
        token_bytes: u64,
    },
    /// The argument's whole rows.
    Rows {
        argument: usize,
        tensor: Tensor,
    },
    Tokens,
}

impl Packing {
    pub(crate) fn new(slots: &[Slot], arguments: &[Argument], to: &Addresses) -> Packing {
        // Outputs that are not in place follow the parameters, in order, as `slots` lists them.
        let mut output = arguments.iter().take_while(|a| a.kind != Kind::Output).count();
        let mut fills = Vec::new();
        let word = |argument: usize| Fill::Word { argument, token_bytes: arguments[argument].token_bytes() };
        let template = slots.iter().enumerate().map(|(i, slot)| {
            let (fixed, fill) = match *slot {
                Slot::Input(ParamId(p)) | Slot::Scalar(ParamId(p)) => (0, Some(word(p as usize))),
                Slot::Rows(ParamId(p)) => {
                    let argument = p as usize;
                    debug_assert!(arguments[argument].tensor.is_permuted());
                    (0, Some(Fill::Rows { argument, tensor: arguments[argument].tensor }))
                }
                Slot::Output(_) => {
                    output += 1;
                    (0, Some(word(output - 1)))
                }
                Slot::Tokens => (0, Some(Fill::Tokens)),
                Slot::Status => (to.status, None),
                // By distance: the kernel's order begins with its own region.
                Slot::Region(i) => {
                    let rank = (to.rank as usize + i as usize) % to.regions.len().max(1);
                    (to.regions.get(rank).copied().unwrap_or(0), None)
                }
                Slot::Epochs => (to.epochs, None),
                Slot::HostStatus => (to.host_status, None),
                Slot::TimeoutNs => (to.timeout_ns, None),
                Slot::GenerationBytes => (to.generation_bytes, None),
                Slot::Rank => (u64::from(to.rank), None),
                other => unreachable!("the packer does not know {other:?}"),
            };
            fills.extend(fill.map(|f| (i, f)));
            fixed
        });
        Packing { template: template.collect(), fills: fills.into() }
    }

    /// The words for `tokens` tokens from `first` on.
    #[inline]
    pub(crate) fn pack(&self, values: &Values, first: u64, tokens: u64) -> Words {
        let mut words: Words = self.template.iter().copied().collect();
        for (at, fill) in &self.fills {
            words[*at] = match *fill {
                Fill::Word { argument, token_bytes } => values[argument].word + first * token_bytes,
                Fill::Rows { argument, tensor } => tensor.rows(values[argument].len),
                Fill::Tokens => tokens,
            };
        }
        words
    }
}
