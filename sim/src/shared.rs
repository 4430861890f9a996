//! Shared memory: one area per block, laid out alike in all blocks of a launch.

use crate::races::{Known, Shadow, Touch, Wrong};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

/// Bytes of static shared memory that a block may have.
pub(crate) const LIMIT: u64 = 48 << 10;

/// Where the shared variables of a kernel lie.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    tag: u64,
    start: u64,
    bytes: u64,
}

impl Layout {
    /// The index of the variable that `tag` names. A new one is laid behind the others; an error carries the bytes needed.
    pub fn piece(&mut self, tag: u64, bytes: u64) -> Result<usize, u64> {
        if let Some(known) = self.pieces.iter().position(|p| p.tag == tag) {
            return Ok(known);
        }
        let start = self.pieces.last().map_or(0, |p| (p.start + p.bytes).next_multiple_of(16));
        if start + bytes > LIMIT {
            return Err(start + bytes);
        }
        self.pieces.push(Piece { tag, start, bytes });
        Ok(self.pieces.len() - 1)
    }

    fn end(&self) -> u64 {
        self.pieces.last().map_or(0, |p| p.start + p.bytes)
    }

    /// The variable that has `bytes` bytes at `offset`.
    pub fn find(&self, offset: u64, bytes: u64) -> Option<usize> {
        self.pieces.iter().position(|p| p.start <= offset && offset + bytes <= p.start + p.bytes)
    }
}

/// The shared memory of one block.
#[derive(Debug, Default)]
pub(crate) struct Area {
    /// In units of what every variable is aligned to.
    memory: Box<[MaybeUninit<UnsafeCell<u128>>]>,
    /// Variables that have been filled with what no kernel should read.
    poisoned: Vec<bool>,
    /// Boxed: threads point to it.
    pub shadow: Box<Shadow>,
}

impl Area {
    fn start(&self) -> u64 {
        self.memory.as_ptr() as u64
    }

    /// The address of variable `piece`. What nobody has written reads as NaN, so a read that comes too early shows.
    pub fn address(&mut self, layout: &Layout, piece: usize) -> u64 {
        if self.memory.is_empty() {
            self.memory = Box::new_uninit_slice(LIMIT as usize / size_of::<u128>());
        }
        let Piece { start, bytes, .. } = layout.pieces[piece];
        self.poisoned.resize(layout.pieces.len().max(self.poisoned.len()), false);
        let address = self.start() + start;
        if !std::mem::replace(&mut self.poisoned[piece], true) {
            // SAFETY: the variable lies within the area (`Layout::piece`), which may be written through shared references.
            unsafe { (address as *mut u8).write_bytes(0xFF, bytes as usize) };
            self.shadow.cover(self.start(), layout.end());
        }
        address
    }

    /// Where in the area `address` is.
    pub fn offset(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.start())?;
        (!self.memory.is_empty() && offset < LIMIT).then_some(offset)
    }

    /// Writes a word at `offset`, in the variable `piece`, by one who knows `known`.
    pub fn store(
        &mut self,
        layout: &Layout,
        piece: usize,
        offset: u64,
        bits: u32,
        by: Touch,
        known: &Known,
    ) -> Result<(), Wrong> {
        self.address(layout, piece);
        let address = self.start() + offset;
        self.shadow.write_knowing(address, by, known)?;
        // SAFETY: the caller found `offset` to be within the variable; as above.
        unsafe { (address as *mut u32).write_volatile(bits) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_where_it_is_in_every_block() {
        let mut layout = Layout::default();
        let a = layout.piece(1, 20).unwrap();
        let b = layout.piece(2, 8).unwrap();
        assert_eq!(layout.piece(1, 20), Ok(a));
        assert_eq!(layout.piece(3, LIMIT), Err(48 + LIMIT));
        assert_eq!((layout.find(16, 4), layout.find(32, 8), layout.find(20, 4)), (Some(a), Some(b), None));
        let mut area = Area::default();
        let at = area.address(&layout, b);
        assert_eq!(area.offset(at), Some(32));
        let place = crate::thread::Place { file: std::ptr::null(), line: 0 };
        let touch = Touch { thread: 0, block: 0, warp: 0, passed: Default::default(), counted: true, place };
        area.store(&layout, b, 36, 7, touch, &Known::default()).unwrap();
        // SAFETY: both words are in `b`, which is initialised.
        let words = unsafe { crate::polled::read(at) };
        assert_eq!(words[..2], [u32::MAX, 7]);
    }
}
