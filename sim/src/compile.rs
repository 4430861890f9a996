//! The system's C++ compiler: where it is, what it is asked, and what its complaints point at.

use crate::SimError;
use crate::source;
use crate::stack::{self, CONTEXT_BYTES, Frames, MOST_FRAMES};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A compiler that answers.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    program: OsString,
    arguments: Vec<String>,
    /// What it says of itself: part of the cache's key.
    pub version: String,
}

impl Compiler {
    /// `$CXX`, or the first of the usual names that runs. Looked for once per process.
    pub fn find() -> Result<Compiler, SimError> {
        static FOUND: OnceLock<Result<Compiler, String>> = OnceLock::new();
        let cxx = || std::env::var_os("CXX").map(|cxx| cxx.to_string_lossy().into_owned());
        let found = FOUND.get_or_init(|| search(cxx().as_deref()));
        found.clone().map_err(|searched| SimError::NoCompiler { searched })
    }

    pub fn name(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }

    /// Everything but the names of files, for stacks of `stack` bytes. Part of the cache's key.
    pub fn flags(&self, stack: usize) -> Vec<String> {
        let mut flags = [
            "-std=c++17",
            "-x",
            "c++",
            "-O2",
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
            // The rounding contract: what is not written as fma is rounded twice, IEEE division and square root, subnormals kept.
            "-ffp-contract=off",
            "-fno-fast-math",
            "-fno-math-errno",
            // Kernels read shared memory through pointers of other types, as CUDA lets them.
            "-fno-strict-aliasing",
            // A fiber that is dropped does not unwind.
            "-fno-exceptions",
            "-fno-rtti",
            "-fno-stack-protector",
            // See `stack`.
            "-fstack-usage",
        ]
        .map(str::to_owned)
        .to_vec();
        flags.push(format!("-DSEAMLINE_STACK_BYTES={stack}ull"));
        flags.push(format!("-DSEAMLINE_THREAD_BYTES={CONTEXT_BYTES}"));
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("fma") {
            // Else the C library computes fma, with the same bits.
            flags.push("-mfma".into());
        }
        flags
    }

    /// Compiles `source` to a shared object, for the smallest stacks that hold its frames.
    pub fn build(&self, pattern: &str, text: &str, source: &Path, object: &Path) -> Result<(), SimError> {
        let mut stack = stack::SMALLEST;
        loop {
            self.build_for(stack, pattern, text, source, object)?;
            let frames = self.frames(object)?.bytes();
            match frames.and_then(stack::size_for) {
                Some(fitting) if fitting <= stack => return Ok(()),
                // The frames are known only now: once more, for larger stacks.
                Some(fitting) => stack = fitting,
                None => {
                    let pattern = pattern.to_owned();
                    return Err(SimError::TooLarge { pattern, needed: frames, limit: MOST_FRAMES as u64 });
                }
            }
        }
    }

    fn build_for(
        &self,
        stack: usize,
        pattern: &str,
        text: &str,
        source: &Path,
        object: &Path,
    ) -> Result<(), SimError> {
        let io = |e| SimError::Io { action: "run", path: PathBuf::from(&self.program), source: e };
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(self.flags(stack)).arg("-o").arg(object).arg(source);
        if let Some(folder) = source.parent() {
            // Some compilers leave files where they run.
            command.current_dir(folder);
        }
        let output = command.output().map_err(io)?;
        let refused =
            |excerpt| Err(SimError::Compile { compiler: self.name(), pattern: pattern.to_owned(), excerpt });
        match output.status.success() {
            true if object.is_file() => Ok(()),
            true => Err(SimError::NoObject { compiler: self.name() }),
            false if output.stderr.trim_ascii().is_empty() => {
                refused(format!("it says nothing, and ends with {}", output.status))
            }
            false => refused(excerpt(&String::from_utf8_lossy(&output.stderr), text)),
        }
    }

    /// The frames of what was just built to `object`, whose folder has the compiler's list.
    fn frames(&self, object: &Path) -> Result<Frames, SimError> {
        let folder = object.parent().unwrap_or(Path::new("."));
        let io = |e| SimError::Io { action: "read", path: folder.to_owned(), source: e };
        Frames::read(folder).map_err(io)?.ok_or_else(|| SimError::NoStackUsage { compiler: self.name() })
    }
}

/// An error carries what was searched.
fn search(cxx: Option<&str>) -> Result<Compiler, String> {
    let mut searched = Vec::new();
    let chosen = cxx.map(str::trim).filter(|c| !c.is_empty());
    // As for make, CXX may carry arguments: `ccache g++`.
    let candidates = match chosen {
        Some(cxx) => vec![cxx],
        None => vec!["c++", "g++", "clang++"],
    };
    for candidate in candidates {
        let mut words = candidate.split_whitespace().map(str::to_owned);
        let Some(program) = words.next() else { continue };
        let arguments = words.collect::<Vec<_>>();
        let answer = Command::new(&program).args(&arguments).arg("--version").output();
        match answer {
            Ok(answer) if answer.status.success() => {
                let version = String::from_utf8_lossy(&answer.stdout).into_owned();
                return Ok(Compiler { program: program.into(), arguments, version });
            }
            Ok(answer) => searched.push(format!("`{candidate}`: --version fails with {}", answer.status)),
            Err(e) => searched.push(format!("`{candidate}`: {e}")),
        }
    }
    if chosen.is_none() {
        searched.push("CXX is not set".into());
    }
    Err(searched.join(", "))
}

/// The first errors, each with the lines of `text` around the place that it names.
fn excerpt(messages: &str, text: &str) -> String {
    const ERRORS: usize = 3;
    let errors = messages.lines().filter(|l| l.contains("error:")).take(ERRORS);
    let shown = errors.map(|message| {
        let place = locate(message, text);
        format!("{message}\n{}", place.map_or(String::new(), |line| source::around(text, line)))
    });
    let shown = shown.collect::<String>();
    match shown.is_empty() {
        // The linker's complaints, or a crash of the compiler.
        true => messages.lines().take(20).collect::<Vec<_>>().join("\n"),
        false => shown,
    }
}

/// The index in `text` of the line that `message` (`file:line:column: error: …`) is about.
fn locate(message: &str, text: &str) -> Option<usize> {
    let (place, _) = message.split_once(": ")?;
    let mut parts = place.rsplitn(3, ':');
    let (_column, line, file) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
    source::index(text, file, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_is_not_there_is_named() {
        let searched = search(Some("no-such-compiler --flag")).unwrap_err();
        assert!(searched.contains("no-such-compiler --flag"), "{searched}");
    }

    #[cfg(unix)]
    #[test]
    fn a_command_that_builds_nothing_is_told_from_a_compiler() {
        let folder = tempfile::tempdir().unwrap();
        let (source, object) = (folder.path().join("kernel.cpp"), folder.path().join("kernel.so"));
        let error = search(Some("true")).unwrap().build("p", "", &source, &object).unwrap_err();
        assert!(matches!(&error, SimError::NoObject { compiler } if compiler == "true"), "{error}");
    }

    #[test]
    fn an_error_shows_the_lines_around_it() {
        let text = "#line 1 \"a.cuh\"\none\ntwo\n#line 1 \"b.cuh\"\nthree\nfour\nfive\n";
        let shown = excerpt("b.cuh: In function f:\nb.cuh:2:7: error: no such thing\nb.cuh:2: note: x", text);
        assert_eq!(
            shown,
            "b.cuh:2:7: error: no such thing\n  | #line 1 \"b.cuh\"\n  | three\n  > four\n  | five\n"
        );
    }

    #[test]
    fn other_complaints_are_shown_as_they_are() {
        assert_eq!(excerpt("ld: cannot find -lm\n", ""), "ld: cannot find -lm");
    }
}
