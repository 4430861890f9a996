//! How long a run waits when no thread can go on: by its own clock, which then moves.

/// How far the clock moves when all wait, at first; then four times as far, until someone gets on.
const FIRST_TICK_NS: u64 = 100_000;
/// A wait that lasts so long has no bound.
const FOR_EVER_NS: u64 = 3_600_000_000_000;
/// Ticks after which a kernel that polls must have looked at the clock.
const TICKS_UNREAD: u32 = 4;

/// Since when nobody has got on.
#[derive(Debug)]
pub(crate) struct Waiting {
    since: u64,
    tick: u64,
    /// How often the clock had been read at the last tick, and the ticks since anyone read it.
    reads: u64,
    unread: u32,
}

impl Waiting {
    pub fn new(now: u64) -> Waiting {
        Waiting { since: now, tick: FIRST_TICK_NS, reads: 0, unread: 0 }
    }

    /// Someone has got on.
    pub fn ends(&mut self, now: u64) {
        self.since = now;
        self.tick = FIRST_TICK_NS;
    }

    /// Whether those who poll may still give up by themselves, when the clock has been read `reads` times.
    pub fn is_bounded(&mut self, now: u64, reads: u64) -> bool {
        if reads != self.reads {
            (self.reads, self.unread) = (reads, 0);
        }
        self.unread < TICKS_UNREAD && now - self.since < FOR_EVER_NS
    }

    /// The time after one more tick.
    pub fn tick(&mut self, now: u64) -> u64 {
        let then = now.saturating_add(self.tick);
        self.tick = self.tick.saturating_mul(4);
        self.unread += 1;
        then
    }
}
