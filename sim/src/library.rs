//! Kernels, built for the CPU.

use crate::build;
use crate::launch::Launch;
use crate::load::Object;
use crate::machine::Machine;
use crate::{Options, SimError, source};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// The simulator's device layer: what stands before a source, in place of CUDA's.
pub const DEVICE_LAYER: (&str, &str) = ("seamline/sim/device.h", include_str!("../host/device.h"));

/// What to build.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The pattern, for messages.
    pub pattern: &'a str,
    /// The whole source, [`DEVICE_LAYER`] included.
    pub text: &'a str,
    /// The kernels in it. Each takes one parameter by value.
    pub entries: &'a [&'a str],
}

const EXPORT: &str = "extern \"C\" __attribute__((visibility(\"default\")))";

/// A kernel: called once per thread, with the slots of its parameter.
pub(crate) type Entry = unsafe extern "C" fn(*const u64);

/// Kernels that can be run. Cheap to share; runs do not affect each other.
#[derive(Debug)]
pub struct Library {
    pattern: String,
    text: String,
    entries: HashMap<String, Entry>,
    stack_bytes: usize,
    // Declared after what points into it.
    _object: Object,
}

impl Library {
    /// Builds `source`, or finds it in the cache.
    ///
    /// # Errors
    /// No compiler, a source that does not compile, or a file that cannot be written or loaded.
    pub fn build(source: &Source<'_>) -> Result<Arc<Library>, SimError> {
        let mut text = source.text.to_owned();
        text.push_str("\n#line 1 \"seamline/sim/calls\"\n");
        for entry in source.entries {
            let _ = writeln!(
                text,
                "{EXPORT} void seamline_call_{entry}(const u64* slots) {{ device::call({entry}, slots); }}"
            );
        }
        let _ = writeln!(text, "{EXPORT} u64 seamline_stack_bytes() {{ return SEAMLINE_STACK_BYTES; }}");
        let object = build::object(source.pattern, &text)?;
        let mut entries = HashMap::new();
        for entry in source.entries {
            // SAFETY: the wrapper that was appended above has this type.
            let call = unsafe { object.function::<Entry>(&format!("seamline_call_{entry}"))? };
            entries.insert((*entry).to_owned(), call);
        }
        // SAFETY: as above.
        let stack_bytes = unsafe { object.function::<extern "C" fn() -> u64>("seamline_stack_bytes")? };
        let stack_bytes = stack_bytes() as usize;
        Ok(Arc::new(Library {
            pattern: source.pattern.to_owned(),
            text,
            entries,
            stack_bytes,
            _object: object,
        }))
    }

    /// The pattern that was built.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The size of stack that its kernels were built for.
    pub(crate) fn stack_bytes(&self) -> usize {
        self.stack_bytes
    }

    /// Line `line` of `file`, as it is written.
    pub(crate) fn line(&self, file: &str, line: u32) -> String {
        source::line(&self.text, file, line as usize).unwrap_or_default().to_owned()
    }

    /// The kernel that `launch` names.
    pub(crate) fn entry(&self, launch: &Launch) -> Result<Entry, SimError> {
        let known = || {
            let mut names = self.entries.keys().map(String::as_str).collect::<Vec<_>>();
            names.sort_unstable();
            format!("there is no such kernel; there are {}", names.join(", "))
        };
        self.entries.get(launch.entry.as_ref()).copied().ok_or_else(|| launch.invalid(known()))
    }
}

/// Runs `launches`, which are one queue per rank, until all have ended.
///
/// # Safety
/// Each launch's arguments must be what its kernel's parameter is made of, and every [`Range`](crate::Range) must be memory
/// that stays valid for the run, that nobody else uses meanwhile, and that may be written where its usage says so.
/// Kernels reach nothing else: an access beyond the ranges ends the run.
///
/// # Errors
/// A launch that is not valid, a rule that a kernel breaks, a deadlock, too little memory.
pub unsafe fn run(launches: &[Launch], options: &Options) -> Result<Report, SimError> {
    let _rounding = crate::float::Environment::set();
    Machine::new(launches, options)?.run()
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Clusters that ran.
    pub clusters: u64,
    /// How often a thread was resumed.
    pub switches: u64,
    /// Time that passed on the device's clock, in nanoseconds: only waiting takes time.
    pub simulated_ns: u64,
}
