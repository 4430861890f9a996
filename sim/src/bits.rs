//! A fixed set of small numbers: which threads, or clusters, can run.

#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    count: usize,
}

impl Bits {
    pub fn with_capacity(len: usize) -> Bits {
        Bits { words: vec![0; len.div_ceil(64)], count: 0 }
    }

    /// Room for `len` members, keeping those there are.
    pub fn grow(&mut self, len: usize) {
        self.words.resize(len.div_ceil(64).max(self.words.len()), 0);
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn contains(&self, i: usize) -> bool {
        self.words.get(i / 64).is_some_and(|w| w >> (i % 64) & 1 == 1)
    }

    pub fn insert(&mut self, i: usize) {
        let (word, bit) = (&mut self.words[i / 64], 1 << (i % 64));
        self.count += usize::from(*word & bit == 0);
        *word |= bit;
    }

    pub fn remove(&mut self, i: usize) {
        let (word, bit) = (&mut self.words[i / 64], 1 << (i % 64));
        self.count -= usize::from(*word & bit != 0);
        *word &= !bit;
    }

    /// The least member that is at least `from`.
    pub fn next(&self, from: usize) -> Option<usize> {
        let first = from / 64;
        let words = self.words.get(first..)?.iter().enumerate();
        words
            .map(|(i, &w)| (first + i, if i == 0 { w & (u64::MAX << (from % 64)) } else { w }))
            .find(|&(_, w)| w != 0)
            .map(|(i, w)| i * 64 + w.trailing_zeros() as usize)
    }

    /// The greatest member that is at most `from`.
    pub fn previous(&self, from: usize) -> Option<usize> {
        let last = (from / 64).min(self.words.len().checked_sub(1)?);
        let words = self.words[..=last].iter().enumerate().rev();
        words
            .map(|(i, &w)| (i, if i == from / 64 { w & (u64::MAX >> (63 - from % 64)) } else { w }))
            .find(|&(_, w)| w != 0)
            .map(|(i, w)| i * 64 + 63 - w.leading_zeros() as usize)
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.next(0), |&i| self.next(i + 1))
    }

    pub fn capacity(&self) -> usize {
        self.words.len() * 64
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;

    #[test]
    fn neighbours_are_found_across_words() {
        let mut bits = Bits::with_capacity(200);
        for i in [0, 63, 64, 130, 199] {
            bits.insert(i);
            bits.insert(i);
        }
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 63, 64, 130, 199]);
        assert_eq!(bits.next(65), Some(130));
        assert_eq!(bits.next(200), None);
        assert_eq!(bits.previous(129), Some(64));
        assert_eq!(bits.previous(63), Some(63));
        assert_eq!(bits.previous(10_000), Some(199));
        for i in [0, 63, 64, 130, 199, 199] {
            bits.remove(i);
        }
        assert!(bits.is_empty());
        assert_eq!((bits.next(0), bits.previous(199)), (None, None));
        assert_eq!(Bits::default().previous(3), None);
    }
}
