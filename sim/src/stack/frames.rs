//! What the functions of a kernel take of its stack, from the compiler's list (`-fstack-usage`).

use std::collections::HashMap;
use std::path::Path;
use std::{fs, io};

/// What a function may take beyond what is listed: the return address and the frame's alignment.
const UNLISTED: u64 = 128;
/// How the names begin of the functions by which kernels are called.
const CALL: &str = "seamline_call_";

/// The frames of one build.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// Bytes by function; those of one name, which may be its parts, together.
    functions: HashMap<String, u64>,
    /// A frame that grows as it runs.
    unbounded: Option<String>,
}

impl Frames {
    /// Reads every list (`.su`) in `folder`; `None` if there is none.
    pub fn read(folder: &Path) -> io::Result<Option<Frames>> {
        let mut frames = None;
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "su") {
                let list = fs::read(path)?;
                frames.get_or_insert_with(Frames::default).add(&String::from_utf8_lossy(&list));
            }
        }
        Ok(frames)
    }

    /// Lines of `file:line:column:function`, bytes, and `static`, `dynamic` or `dynamic,bounded`.
    fn add(&mut self, list: &str) {
        for line in list.lines() {
            let mut fields = line.rsplitn(3, '\t');
            let (kind, bytes, function) = (fields.next(), fields.next(), fields.next());
            let bytes = bytes.and_then(|bytes| bytes.parse::<u64>().ok());
            let name = name(function.unwrap_or_default());
            match (kind, bytes) {
                (Some("static" | "dynamic,bounded"), Some(bytes)) => {
                    let sum = self.functions.entry(name.to_owned()).or_default();
                    *sum = sum.saturating_add(bytes).saturating_add(UNLISTED);
                }
                _ => self.unbounded = Some(name.to_owned()),
            }
        }
    }

    /// The most that a thread takes: no function recurses and a thread runs one kernel, so at worst every function but the
    /// other kernels is in the chain. `None` without a bound.
    pub fn bytes(&self) -> Option<u64> {
        let bytes = |name: &str| self.functions.get(name).copied().unwrap_or(0);
        let kernels = || self.functions.keys().filter_map(|name| name.strip_prefix(CALL));
        let of_kernel = |kernel: &str| bytes(kernel) + bytes(&format!("{CALL}{kernel}"));
        let all = self.functions.values().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        let kernels_together = kernels().map(of_kernel).fold(0u64, u64::saturating_add);
        let largest = kernels().map(of_kernel).max().unwrap_or(0);
        self.unbounded.is_none().then(|| all.saturating_sub(kernels_together).saturating_add(largest))
    }
}

/// The name in `file:line:column:void name(int)`, or in `file:line:name`. What is not understood is a name of its own.
fn name(function: &str) -> &str {
    let declared = function.split('(').next().unwrap_or(function);
    declared.rsplit([' ', '*', '&']).next().filter(|name| !name.is_empty()).map_or(function, |name| {
        // Without a return type the file is still in front.
        name.rsplit_once(':').map_or(name, |(front, last)| if front.ends_with(':') { name } else { last })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(list: &str) -> Option<u64> {
        let mut frames = Frames::default();
        frames.add(list);
        frames.bytes()
    }

    #[test]
    fn a_thread_runs_one_kernel_and_may_be_in_every_other_function() {
        let gcc = "test.cu:3:33:float device::g(float*, int)\t100\tstatic\n\
            test.cu:4:50:void tt(T) [with T = A]\t50\tdynamic,bounded\n\
            test.cu:5:17:void one(Args)\t1000\tstatic\n\
            calls:6:56:void seamline_call_one(const u64*)\t10\tstatic\n\
            test.cu:5:17:void two(Args)\t300\tstatic\n\
            test.cu:5:17:void two(Args)\t400\tstatic\n\
            calls:6:56:void seamline_call_two(const u64*)\t20\tstatic\n";
        assert_eq!(bytes(gcc), Some(100 + 50 + 1000 + 10 + 4 * UNLISTED));
        let clang = "test.cu:3:_ZN6device1gEPfi\t100\tstatic\n\
            test.cu:5:one\t1000\tstatic\ncalls:6:seamline_call_one\t10\tstatic\n\
            test.cu:5:two\t700\tstatic\ncalls:6:seamline_call_two\t20\tstatic\n";
        assert_eq!(bytes(clang), Some(100 + 1000 + 10 + 3 * UNLISTED));
    }

    #[test]
    fn a_frame_that_grows_has_no_bound() {
        assert_eq!(bytes("a.cu:3:33:void f(int)\t100\tdynamic\n"), None);
        assert_eq!(bytes("a line of another form\n"), None);
    }

    #[test]
    fn functions_are_told_by_their_own_names() {
        for (function, expected) in [
            ("a.cu:3:33:float* device::g(float*, int)", "device::g"),
            ("a.cu:3:33:Spec::Row::kernel(u32)", "a.cu:3:33:Spec::Row::kernel"),
            ("a.cu:3:one_shot_1x128", "one_shot_1x128"),
            ("seamline/sim/calls:3:17:void seamline_call_k(const u64*)", "seamline_call_k"),
        ] {
            assert_eq!(name(function), expected, "{function}");
        }
    }
}
