//! Why a check failed.

use super::report::{Case, Missing};
use crate::Error;
use std::fmt;

/// Why a [`check`](super::check) failed.
#[derive(Clone)]
#[non_exhaustive]
pub enum CheckError {
    /// The pattern cannot be prepared as the options say, or the reference cannot run it.
    Prepare(Error),
    /// Nothing on this machine runs kernels.
    NothingRan {
        /// The pattern.
        pattern: String,
        /// What there could have been.
        missing: Vec<Missing>,
    },
    /// Bits differ, or a case could not be run.
    Case {
        /// The first such case.
        case: Box<Case>,
        /// How many such cases there are.
        bad: usize,
        /// Of so many.
        cases: usize,
    },
}

impl From<Error> for CheckError {
    fn from(error: Error) -> CheckError {
        CheckError::Prepare(error)
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckError::Prepare(error) => error.fmt(f),
            CheckError::NothingRan { pattern, missing } => {
                write!(f, "`{pattern}` was not checked: nothing here runs kernels")?;
                missing.iter().try_for_each(|missing| write!(f, "; {missing}"))
            }
            CheckError::Case { case, bad, cases } => write!(f, "{case} ({bad} of {cases} cases fail)"),
        }
    }
}

impl fmt::Debug for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What `unwrap` prints, and a test that returns it: the message is worth more than the structure.
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for CheckError {}
