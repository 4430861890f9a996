//! What runs kernels on this machine.

use super::report::Missing;
use crate::{Error, ErrorKind, Rank};

/// Makes a group of so many ranks.
pub(super) type MakeGroup = dyn Fn(u32) -> Result<Vec<Rank>, Error> + Send + Sync;

/// Something whose results are held against the reference's.
pub(super) struct Executor {
    pub(super) name: String,
    pub(super) group: Box<MakeGroup>,
}

impl Executor {
    pub(super) fn new(
        name: impl Into<String>,
        group: impl Fn(u32) -> Result<Vec<Rank>, Error> + Send + Sync + 'static,
    ) -> Executor {
        Executor { name: name.into(), group: Box::new(group) }
    }
}

/// Every executor there is, and what is missing for the others.
pub(super) fn here() -> (Vec<Executor>, Vec<Missing>) {
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    for (name, found) in [("sim", sim()), ("cuda", cuda())] {
        match found {
            Ok(executor) => here.push(executor),
            Err(error) => missing.push(Missing { executor: name, reason: reason(&error) }),
        }
    }
    (here, missing)
}

/// Without the executor's name, which is said beside it.
fn reason(error: &Error) -> String {
    match error.kind() {
        ErrorKind::Executor { reason, .. } => reason.clone(),
        _ => error.to_string(),
    }
}

#[cfg(feature = "sim")]
fn sim() -> Result<Executor, Error> {
    use crate::sim::{Simulated, Simulator};
    Simulator::available()?;
    Ok(Executor::new("sim", crate::Group::simulated))
}

#[cfg(not(feature = "sim"))]
fn sim() -> Result<Executor, Error> {
    Err(without("sim"))
}

#[cfg(feature = "cuda")]
fn cuda() -> Result<Executor, Error> {
    let context = crate::cuda::context(0)?;
    let group = move |ranks| crate::Group::loopback(&context, ranks);
    // A GPU that is too old says so here.
    group(1)?;
    Ok(Executor::new("cuda", group))
}

#[cfg(not(feature = "cuda"))]
fn cuda() -> Result<Executor, Error> {
    Err(without("cuda"))
}

#[cfg(not(all(feature = "sim", feature = "cuda")))]
fn without(feature: &'static str) -> Error {
    Error::executor(feature, format!("seamline is built without its feature `{feature}`"))
}
