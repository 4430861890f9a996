//! The arguments of a generated kernel: one struct, passed by value, of 8-byte slots.
//!
//! Executors pack it from the same list that the generator prints it from.

use crate::tensor::Access;
use crate::{OutputId, ParamId, Program};

/// One slot of a kernel's `Args`, in the order of [`slots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Slot {
    /// The address of an input; for an in-place parameter, of what is read and written.
    Input(ParamId),
    /// P, the rows of a `Permuted`.
    Rows(ParamId),
    /// A `Scalar`: an f32 in the low half.
    Scalar(ParamId),
    /// The address of an output that is not in place.
    Output(OutputId),
    /// The tokens of this launch.
    Tokens,
    /// The address of this rank's control words ([`STATUS_WORDS`] of u32).
    Status,
    /// The address, as this rank sees it, of the region of rank `(rank + i) % ranks`; 0 is its own.
    Region(u32),
    /// The address of this rank's epochs, one u32 per slot.
    Epochs,
    /// The address of the status' mirror in host memory.
    HostStatus,
    /// How long a poll may last, in nanoseconds.
    TimeoutNs,
    /// Bytes of one generation of the region's first part.
    GenerationBytes,
    /// This rank's index.
    Rank,
}

/// Control words of a rank: the fault word; rank, peer, slot and epoch of the first fault; row indices out of range.
pub const STATUS_WORDS: usize = 6;

/// The slots of `program`'s kernels.
pub fn slots(program: &Program) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (id, _) in program.present() {
        let tensor = program.tensor(id);
        slots.push(match tensor.ty.access {
            Access::Value => Slot::Scalar(id),
            Access::Weights | Access::Activations => Slot::Input(id),
        });
        if tensor.is_permuted() {
            slots.push(Slot::Rows(id));
        }
    }
    for (i, output) in program.outputs.iter().enumerate() {
        if output.in_place.is_none() {
            slots.push(Slot::Output(OutputId(i as u32)));
        }
    }
    slots.extend([Slot::Tokens, Slot::Status]);
    if program.exchanges() {
        slots.extend((0..program.dims.ranks).map(Slot::Region));
        slots.extend([Slot::Epochs, Slot::HostStatus, Slot::TimeoutNs, Slot::GenerationBytes, Slot::Rank]);
    }
    slots
}

/// Generations of each part of a region; see [`Layout`](crate::schedule::Layout).
pub const GENERATIONS: u64 = 3;

/// The word that fills an empty region.
pub const EMPTY_WORD: u32 = u32::MAX;
