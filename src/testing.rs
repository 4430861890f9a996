//! For the tests of engines: what runs here stores what the reference says, bit for bit.
//!
//! [`check`] is one line in a test of your own. [`Check`] is the same with everything to choose, and [`Runner`],
//! [`Workload`] and [`Expected`] are what it is made of.

mod check;
mod compare;
mod error;
mod executors;
mod report;
mod runner;

pub use check::Check;
pub use compare::{Comparison, Difference, Element, Expected};
pub use error::CheckError;
pub use report::{Case, Missing, Outcome, Report};
#[cfg(feature = "cuda")]
pub use runner::DeviceBuffer;
pub use runner::{Ran, Runner};
pub use seamline_codegen::workload::{Kind, Workload};
pub use seamline_runtime::testing::compile_count;

use crate::{Pattern, Prepare};

/// Runs `P` wherever this machine can, and compares every bit of every rank with the reference.
///
/// The generated CUDA runs on the CPU (feature `sim` and a C++ compiler) and on the first GPU, where there is one,
/// with loopback ranks. Cases are every variant that `options` prepare, alone and on two ranks, with 1 and 5 tokens
/// (or `max_tokens`, if that is less), on ordinary, engine-like and hostile inputs. [`Check`] chooses others.
///
/// ```no_run
/// use seamline::patterns::ArResidualRmsnorm;
/// use seamline::testing::CheckError;
/// use seamline::{DType, Prepare};
///
/// #[test]
/// # fn hidden_from_rustdoc() {}
/// fn the_attention_seam_is_exact() -> Result<(), CheckError> {
///     let report = seamline::testing::check::<ArResidualRmsnorm>(&Prepare::new(16).hidden(4096).dtype(DType::Bf16))?;
///     println!("{report}");
///     Ok(())
/// }
/// ```
///
/// The simulator builds a shared object for every variant and number of ranks, which takes seconds, and keeps it in
/// the user's cache folder, so that the next run does not.
///
/// # Errors
/// The first case whose bits differ or that could not run; options that cannot be prepared; or that nothing here can
/// run kernels, so that nothing was checked.
pub fn check<P: Pattern>(options: &Prepare) -> Result<Report, CheckError> {
    Check::new(P::GRAPH, options).run(|_| ())?.into_result()
}
