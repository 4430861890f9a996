//! What a run is given: kernels to launch, with the memory that each may reach.

use crate::{Library, SimError};
use seamline_runtime::executor::AccessRole;
use std::borrow::Cow;
use std::sync::Arc;

/// One kernel of one rank. Launches of a rank run in the order in which they are given, as on a stream.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Where the kernel is.
    pub library: Arc<Library>,
    /// The kernel's name.
    pub entry: Cow<'static, str>,
    /// Who launches it.
    pub rank: u32,
    /// Blocks in x and y.
    pub grid: (u32, u32),
    /// Blocks of a cluster, in x; 1 without clusters.
    pub cluster: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Whether it may begin before the launch before it has ended: programmatic dependent launch.
    pub dependent: bool,
    /// The kernel's one parameter, a struct of 8-byte slots.
    pub args: Vec<u64>,
    /// Everything it may reach.
    pub memory: Vec<Range>,
}

impl Launch {
    /// Refuses what no GPU would take, but for a grid of no blocks: that is nothing to do.
    pub(crate) fn check(&self) -> Result<(), SimError> {
        let Launch { grid: (x, y), cluster, threads, .. } = *self;
        let reason = if !(1..=1024).contains(&threads) {
            format!("a block of {threads} threads; it has 1 to 1024")
        } else if !(1..=16).contains(&cluster) {
            format!("a cluster of {cluster} blocks; it has 1 to 16")
        } else if !x.is_multiple_of(cluster) {
            format!("{x} blocks are not a multiple of the cluster of {cluster}")
        } else if y > u16::MAX.into() {
            format!("a grid of {y} blocks in y; it has at most {}", u16::MAX)
        } else if u64::from(x) * u64::from(y) > i32::MAX as u64 {
            format!("a grid of {x} x {y} blocks; at most {} are supported", i32::MAX)
        } else {
            return Ok(());
        };
        Err(self.invalid(reason))
    }

    pub(crate) fn invalid(&self, reason: String) -> SimError {
        SimError::Launch { entry: self.entry.to_string(), rank: self.rank, reason }
    }
}

/// Memory, and what a kernel may do there.
#[derive(Clone, Debug)]
pub struct Range {
    /// As messages call it: the argument's name.
    pub name: Cow<'static, str>,
    /// Where it begins.
    pub start: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// What may be done.
    pub usage: AccessRole,
}

/// What an access does. The numbers are the device layer's.
#[allow(dead_code, reason = "the device layer makes them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Access {
    LoadConst,
    Load,
    Store,
    Poll,
    Push,
    Arm,
    ControlLoad,
    ControlStore,
}

impl Access {
    pub fn verb(self) -> &'static str {
        match self {
            Access::LoadConst => "reads, as constant memory,",
            Access::Load => "reads",
            Access::Store => "writes",
            Access::Poll => "polls",
            Access::Push => "pushes to",
            Access::Arm => "empties",
            Access::ControlLoad => "reads, as a control word,",
            Access::ControlStore => "writes, as a control word,",
        }
    }

    fn allowed(self, usage: AccessRole) -> bool {
        use AccessRole::*;
        match self {
            Access::LoadConst => matches!(usage, Weights | Input),
            Access::Load => matches!(usage, Weights | Input | Output),
            Access::Store => matches!(usage, Output),
            Access::Poll | Access::Arm => matches!(usage, Inbox),
            Access::Push => matches!(usage, Outbox { .. }),
            Access::ControlLoad | Access::ControlStore => matches!(usage, Control),
        }
    }
}

impl Range {
    /// Where in the range `bytes` bytes at `address` lie, if they do.
    fn offset(&self, address: u64, bytes: u64) -> Option<u64> {
        let offset = address.checked_sub(self.start)?;
        (offset.checked_add(bytes)? <= self.bytes).then_some(offset)
    }

    pub(crate) fn allows(&self, access: Access, address: u64, bytes: u64) -> bool {
        access.allowed(self.usage)
            && self.offset(address, bytes).is_some_and(|offset| match self.usage {
                AccessRole::Outbox { row, stride, .. } => offset % stride.max(1) + bytes <= row,
                _ => true,
            })
    }

    fn kind(&self) -> String {
        match self.usage {
            AccessRole::Weights => "constant weights".into(),
            AccessRole::Input => "an input".into(),
            AccessRole::Output => "an output".into(),
            AccessRole::Inbox => "this rank's exchange memory".into(),
            AccessRole::Outbox { rank, .. } => {
                format!("this rank's rows in the exchange memory of rank {rank}")
            }
            AccessRole::Control => "control words".into(),
            // The enum may grow: of what is not known here nothing is allowed.
            _ => "memory of a kind that this simulator does not know".into(),
        }
    }
}

/// What lies at `address`, in words: the range that holds it, or the nearest one before or after.
pub(crate) fn describe(memory: &[Range], address: u64) -> String {
    let inside = memory.iter().filter_map(|r| Some((r, r.offset(address, 1)?)));
    // Of ranges that overlap, the shortest says most.
    if let Some((range, offset)) = inside.min_by_key(|(r, _)| r.bytes) {
        return match range.usage {
            AccessRole::Outbox { rank, row, stride } if offset % stride.max(1) >= row => {
                format!(
                    "another rank's row in the exchange memory of rank {rank}, {offset} bytes from this rank's first"
                )
            }
            _ => format!("byte {offset} of `{}`, {}", range.name, range.kind()),
        };
    }
    let before = memory.iter().filter(|r| r.start + r.bytes <= address).max_by_key(|r| r.start + r.bytes);
    let after = memory.iter().filter(|r| r.start > address).min_by_key(|r| r.start);
    let distance =
        |r: &&Range| if r.start > address { r.start - address } else { address - (r.start + r.bytes) };
    match before.into_iter().chain(after).min_by_key(distance) {
        Some(r) if r.start > address => {
            format!(
                "the address {} bytes before `{}`, which has {} bytes",
                r.start - address,
                r.name,
                r.bytes
            )
        }
        Some(r) => {
            format!(
                "the address {} bytes past the end of `{}`, which has {} bytes",
                distance(&r),
                r.name,
                r.bytes
            )
        }
        None => "an address near no argument".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(name: &'static str, start: u64, bytes: u64, usage: AccessRole) -> Range {
        Range { name: name.into(), start, bytes, usage }
    }

    #[test]
    fn what_is_there_decides_what_may_be_done() {
        let out = range("out", 100, 50, AccessRole::Output);
        assert!(out.allows(Access::Store, 100, 50));
        assert!(!out.allows(Access::Store, 99, 2) && !out.allows(Access::Store, 149, 2));
        assert!(
            !out.allows(Access::LoadConst, 100, 2),
            "a kernel's own stores are not seen by constant loads"
        );
        assert!(!out.allows(Access::Load, u64::MAX, 2));
        let rows = range("peer", 64, 1000, AccessRole::Outbox { rank: 1, row: 16, stride: 64 });
        assert!(rows.allows(Access::Push, 64 + 128, 16));
        assert!(!rows.allows(Access::Push, 64 + 144, 16), "another rank's row");
    }

    #[test]
    fn an_address_is_described_by_its_neighbours() {
        let memory = [range("a", 100, 50, AccessRole::Input), range("b", 200, 50, AccessRole::Output)];
        assert_eq!(describe(&memory, 107), "byte 7 of `a`, an input");
        assert_eq!(describe(&memory, 152), "the address 2 bytes past the end of `a`, which has 50 bytes");
        assert_eq!(describe(&memory, 190), "the address 10 bytes before `b`, which has 50 bytes");
        assert_eq!(describe(&[], 1), "an address near no argument");
    }
}
