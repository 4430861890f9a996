//! One line per step, and the closing line.

use std::time::Duration;

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Counts {
    pub const PASSED: Counts = Counts { passed: 1, failed: 0, skipped: 0 };
    pub const FAILED: Counts = Counts { passed: 0, failed: 1, skipped: 0 };
    pub const SKIPPED: Counts = Counts { passed: 0, failed: 0, skipped: 1 };
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// Prints `step`'s line.
pub fn line(step: &str, counts: Counts, time: Duration) {
    let verdict = match counts {
        Counts { failed: 1.., .. } => "FAILED",
        Counts { passed: 0, skipped: 1.., .. } => "skipped",
        _ => "ok",
    };
    println!("{step:<44} {verdict:<8} {:>7.1} s   {counts}", time.as_secs_f64());
}
