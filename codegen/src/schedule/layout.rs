//! What a rank's exchange memory holds.

use crate::Program;
use crate::abi::GENERATIONS;

/// A rank's region: its parts, one after the other. All of it begins as empty words.
///
/// A part is [`GENERATIONS`] generations of slots, a slot for each token. In a slot the ranks' pieces take turns: the
/// first piece of every rank, from rank 0 on, then the second of every rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Ranks of the group.
    pub ranks: u32,
    /// What is exchanged in one hop each.
    pub parts: Vec<Part>,
}

/// What the ranks write in one hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Bytes that lie together and come from one rank.
    pub piece_bytes: u64,
    /// Pieces that a slot has of each rank.
    pub pieces: u64,
}

/// Where one rank may write in a region: `piece` bytes at every `stride` from `start` on, until `start + bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outbox {
    /// From the beginning of the region.
    pub start: u64,
    /// Bytes from there to the end of the part.
    pub bytes: u64,
    /// Bytes that lie together.
    pub piece: u64,
    /// Bytes from a piece to the next one.
    pub stride: u64,
}

impl Part {
    /// Bytes of a slot of `ranks` ranks.
    fn slot_bytes(&self, ranks: u32) -> u64 {
        u64::from(ranks) * self.pieces * self.piece_bytes
    }
}

impl Layout {
    /// Bytes of one generation of the first part, with so many slots. Kernels are told it, and know where the other parts
    /// lie from it.
    pub fn generation_bytes(&self, slots: u64) -> u64 {
        self.parts.first().map_or(0, |part| slots * part.slot_bytes(self.ranks))
    }

    /// Bytes of a region with so many slots.
    pub fn bytes(&self, slots: u64) -> u64 {
        self.parts.iter().map(|part| GENERATIONS * slots * part.slot_bytes(self.ranks)).sum()
    }

    /// Where `rank` may write in a region with so many slots.
    pub fn outboxes(&self, rank: u32, slots: u64) -> impl Iterator<Item = Outbox> {
        let mut end = 0;
        self.parts.iter().map(move |part| {
            let start = end + u64::from(rank) * part.piece_bytes;
            end += GENERATIONS * slots * part.slot_bytes(self.ranks);
            let stride = u64::from(self.ranks) * part.piece_bytes;
            Outbox { start, bytes: end - start, piece: part.piece_bytes, stride }
        })
    }
}

/// Bytes of one rank's wire row.
pub(super) fn wire_row_bytes(program: &Program) -> u64 {
    u64::from(program.dims.hidden.next_multiple_of(super::rows::LANE)) * program.dims.wire.size() as u64
}
