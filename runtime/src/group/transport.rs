//! How two ranks share memory.

use crate::error::Error;
use crate::group::memory::{Mapping, Own};
use std::fmt;

/// For one rank that owns memory and one whose kernels use it: what makes the first one's reachable to the second.
pub(crate) trait Transport: fmt::Debug + Send + Sync {
    /// Maps `own` until the mapping is dropped.
    fn map(&self, own: &Own) -> Result<Mapping, Error>;
}

/// Of ranks in one process whose kernels share an address space: several on one device, or all on the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneSpace;

impl Transport for OneSpace {
    fn map(&self, own: &Own) -> Result<Mapping, Error> {
        Ok(Mapping::in_place(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::memory::HostWords;

    #[test]
    fn what_is_mapped_is_where_it_is_and_outlives_its_owner() {
        let own = Own::new(HostWords::new(5, 7).unwrap());
        let mapping = OneSpace.map(&own).unwrap();
        assert_eq!((mapping.address(), mapping.bytes()), (own.address(), 20));
        drop(own);
        let word: *const u32 = std::ptr::with_exposed_provenance(mapping.address() as usize + 16);
        // SAFETY: the mapping keeps the words, and nobody writes them.
        assert_eq!(unsafe { word.read() }, 7);
    }
}
