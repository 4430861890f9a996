//! Mbarriers: barriers in shared memory that count bytes. Each is made for one arrival, which says how many bytes its
//! phase expects; bytes may come before it.

use crate::error::Fault;
use crate::races::{Known, Touch};

/// What a thread does with an mbarrier. The numbers are the device layer's.
#[allow(dead_code, reason = "the device layer makes them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Call {
    Init,
    /// Arrives, and expects so many bytes.
    Expect,
    /// Waits for the last phase of a parity.
    Wait,
}

/// One of a block.
#[derive(Debug)]
pub(crate) struct Mbarrier {
    made: Touch,
    phase: u32,
    arrived: bool,
    /// Bytes that are expected and have not come; below zero before the arrival.
    lacks: i64,
    /// What those know whose bytes have come in this phase, and in those that have ended.
    sent: Known,
    ended: Known,
}

impl Mbarrier {
    /// Made by the thread that `made` it.
    pub fn new(made: Touch) -> Mbarrier {
        let (sent, ended) = Default::default();
        Mbarrier { made, phase: 0, arrived: false, lacks: 0, sent, ended }
    }

    /// Whether a thread can know that it is made.
    pub fn is_made_for(&self, user: &Touch) -> bool {
        let (made, user_passed) = (&self.made, user.passed);
        made.thread == user.thread
            || made.block == user.block && made.passed.block < user_passed.block
            || made.passed.arrived < user_passed.waited
    }

    /// The arrival of this phase. Whether the phase ends.
    pub fn expect(&mut self, bytes: u32) -> Result<bool, Fault> {
        if std::mem::replace(&mut self.arrived, true) {
            return Err(Fault::MbarrierArrivedTwice);
        }
        self.lacks += i64::from(bytes);
        self.advance()
    }

    /// `bytes` bytes have come, from one who knows `known`. Whether the phase ends.
    pub fn receive(&mut self, bytes: u32, known: &Known) -> Result<bool, Fault> {
        self.lacks -= i64::from(bytes);
        self.sent.merge(known);
        self.advance()
    }

    fn advance(&mut self) -> Result<bool, Fault> {
        if !self.arrived || self.lacks > 0 {
            return Ok(false);
        }
        if self.lacks < 0 {
            return Err(Fault::MbarrierOverrun { bytes: self.lacks.unsigned_abs() });
        }
        self.arrived = false;
        self.phase = self.phase.wrapping_add(1);
        self.ended.merge(&std::mem::take(&mut self.sent));
        Ok(true)
    }

    /// Whether the last phase with this parity has ended, and what is known then.
    pub fn ended(&self, parity: u32) -> Option<&Known> {
        (self.phase % 2 != parity % 2).then_some(&self.ended)
    }

    /// What its phase lacks, unless nothing of it has begun.
    pub fn lacks(&self) -> Option<String> {
        match (self.arrived, self.lacks) {
            (false, 0) => None,
            (false, _) => Some("the arrival that says how many bytes it expects".into()),
            (true, bytes) => Some(format!("{bytes} bytes that it expects")),
        }
    }
}
