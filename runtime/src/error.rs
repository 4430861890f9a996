//! Everything that can go wrong, one kind per rule.

mod kind;

pub use kind::ErrorKind;
use seamline_codegen::BindError;
use std::fmt;
use std::sync::Arc;

/// Why a group, a `prepare` or a `launch` failed.
///
/// When a launch answers one, nothing was queued; but for [`ErrorKind::Driver`], and for [`ErrorKind::Executor`] of a
/// host executor that has begun to run it. A launch of more tokens than one kernel takes is several kernels, and those
/// before the one that the driver refused run, as do those of ranks before it in [`launch_all`](crate::launch_all).
/// Their peers wait in vain: [`reset`](crate::reset) the group.
///
/// Cheap to clone: the ranks of a group share the error of the one that failed.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: ErrorKind,
    pattern: Option<String>,
    rank: Option<u32>,
}

impl Error {
    /// The rule that was broken, with the values that broke it.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The pattern that was prepared or launched, if one was.
    pub fn pattern(&self) -> Option<&str> {
        self.0.pattern.as_deref()
    }

    /// The rank on which it happened, if it is one rank's.
    pub fn rank(&self) -> Option<u32> {
        self.0.rank
    }

    /// An executor's own error.
    pub fn executor(executor: &'static str, error: impl std::error::Error) -> Error {
        let mut reason = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            reason += &format!(": {error}");
            source = error.source();
        }
        ErrorKind::Executor { executor, reason }.into()
    }

    /// Says which pattern it was, and on which rank, unless that is known.
    #[cold]
    pub(crate) fn of(self, pattern: &str, rank: Option<u32>) -> Error {
        if self.0.pattern.is_some() {
            return self;
        }
        let kind = self.0.kind.clone();
        Error(Arc::new(Inner { kind, pattern: Some(pattern.to_owned()), rank: self.0.rank.or(rank) }))
    }
}

impl Error {
    /// Says on which rank it was, unless that is known.
    #[cold]
    pub(crate) fn on(self, rank: u32) -> Error {
        let Inner { kind, pattern, rank: known } = &*self.0;
        let (kind, pattern) = (kind.clone(), pattern.clone());
        Error(Arc::new(Inner { kind, pattern, rank: known.or(Some(rank)) }))
    }
}

impl From<ErrorKind> for Error {
    #[cold]
    fn from(kind: ErrorKind) -> Error {
        Error(Arc::new(Inner { kind, pattern: None, rank: None }))
    }
}

impl From<BindError> for Error {
    fn from(error: BindError) -> Error {
        ErrorKind::Bind(error).into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, pattern, rank } = &*self.0;
        match (pattern, rank) {
            // These name the pattern themselves.
            _ if matches!(kind, ErrorKind::Bind(_)) => {}
            (Some(pattern), Some(rank)) => write!(f, "`{pattern}`, rank {rank}: ")?,
            (Some(pattern), None) => write!(f, "`{pattern}`: ")?,
            (None, _) => {}
        }
        kind.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What `unwrap` prints: the message is worth more than the structure.
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}
