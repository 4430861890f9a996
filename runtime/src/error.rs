//! Everything that can go wrong, one kind per rule.

mod kind;

pub use kind::ErrorKind;
use seamline_codegen::BindError;
use std::error::Error as StdError;
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

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    pattern: Option<String>,
    rank: Option<u32>,
    /// What `kind` has its words from.
    cause: Option<Arc<dyn StdError + Send + Sync>>,
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
    pub fn executor(executor: &'static str, error: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        let cause = error.into();
        ErrorKind::Executor { executor, reason: cause.to_string() }.because(cause)
    }

    /// The error that this one is made of and has its words from, if it is: an executor's own, say, to be downcast. Its
    /// [`source`](StdError::source) is this one's.
    pub fn get_ref(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.0.cause.as_deref()
    }

    /// Says which pattern it was, and on which rank, unless that is known.
    #[cold]
    pub(crate) fn of(self, pattern: &str, rank: Option<u32>) -> Error {
        match self.0.pattern {
            Some(_) => self,
            None => Error(Arc::new(Inner {
                pattern: Some(pattern.to_owned()),
                rank: self.0.rank.or(rank),
                ..Inner::clone(&self.0)
            })),
        }
    }

    /// Says on which rank it was, unless that is known.
    #[cold]
    pub(crate) fn on(self, rank: u32) -> Error {
        Error(Arc::new(Inner { rank: self.0.rank.or(Some(rank)), ..Inner::clone(&self.0) }))
    }
}

impl ErrorKind {
    #[cold]
    fn because(self, cause: Box<dyn StdError + Send + Sync>) -> Error {
        Error(Arc::new(Inner { kind: self, pattern: None, rank: None, cause: Some(cause.into()) }))
    }
}

impl From<ErrorKind> for Error {
    #[cold]
    fn from(kind: ErrorKind) -> Error {
        Error(Arc::new(Inner { kind, pattern: None, rank: None, cause: None }))
    }
}

impl From<BindError> for Error {
    fn from(error: BindError) -> Error {
        ErrorKind::Bind { reason: error.to_string() }.because(error.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, pattern, rank, .. } = &*self.0;
        match (pattern, rank) {
            // These name the pattern themselves.
            _ if matches!(kind, ErrorKind::Bind { .. }) => {}
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
        fmt::Display::fmt(self, f)?;
        let mut said = self.to_string();
        let mut source = self.source();
        while let Some(error) = source {
            let more = format!(": {error}");
            // Some say their source's words themselves.
            if !said.ends_with(&more) {
                f.write_str(&more)?;
                said += &more;
            }
            source = error.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.as_deref()?.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, thiserror::Error)]
    #[error("the disk is full")]
    struct Full;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot write")]
    struct Write(#[source] Full);

    #[test]
    fn an_executors_error_is_kept_whole_and_told_once() {
        let error = Error::executor("disk", Write(Full)).on(2).of("seam", None);
        assert_eq!(error.to_string(), "`seam`, rank 2: disk: cannot write");
        assert_eq!(format!("{error:?}"), "`seam`, rank 2: disk: cannot write: the disk is full");
        assert!(error.get_ref().is_some_and(|e| e.is::<Write>()));
        assert_eq!(error.source().and_then(|e| e.downcast_ref()), Some(&Full));
        let of = Error::executor("disk", "out of luck");
        assert_eq!((of.to_string(), of.source().is_none()), ("disk: out of luck".into(), true));
    }

    #[test]
    fn what_does_not_bind_can_be_told_by_program() {
        let unbound = BindError::Unbound { pattern: "seam".into(), dim: "hidden" };
        let error = Error::from(unbound.clone()).of("seam", Some(0));
        assert_eq!(error.get_ref().and_then(|e| e.downcast_ref()), Some(&unbound));
        assert_eq!(error.to_string(), unbound.to_string());
    }
}
