//! The system's C++ compiler: where it is, what it is asked, and what its complaints point at.

mod excerpt;

use crate::SimError;
use crate::stack::{self, CONTEXT_BYTES, Frames, MOST_FRAMES};
use excerpt::excerpt;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// A compiler that answers.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    program: OsString,
    arguments: Vec<String>,
    /// See [`Compiler::identity`].
    about: String,
}

/// Variables that compilers and linkers read, beyond what they tell by `-###`.
const VARIABLES: [&str; 14] = [
    "CCC_OVERRIDE_OPTIONS",
    "COMPILER_PATH",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "C_INCLUDE_PATH",
    "GCC_EXEC_PREFIX",
    "LDEMULATION",
    "LD_RUN_PATH",
    "LIBRARY_PATH",
    "MACOSX_DEPLOYMENT_TARGET",
    "NIX_CFLAGS_COMPILE",
    "NIX_LDFLAGS",
    "SDKROOT",
    "SOURCE_DATE_EPOCH",
];

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

    /// Everything that it makes of a source, other than the source: the cache's key has it. Which program it is, and which file;
    /// its arguments, flags and environment; and what these become, which it tells by `-###`: `-march=native`, files of arguments,
    /// what a wrapper adds.
    pub fn identity(&self) -> String {
        let flags = self.flags(stack::SMALLEST).join(" ");
        format!("{}\n{:?}\n{flags}\n{}", self.name(), self.arguments, self.about)
    }

    fn about(&self, version: &str) -> String {
        let mut ask = Command::new(&self.program);
        ask.args(&self.arguments).args(self.flags(stack::SMALLEST));
        let answer = ask.args(["-###", "-S", "-o", "/dev/null", "/dev/null"]).output();
        // One that does not know the question is known by the rest.
        let told = answer.map_or(Vec::new(), |answer| [answer.stdout, answer.stderr].concat());
        let told = String::from_utf8_lossy(&told);
        // Clang tells where it runs, for debuggers.
        let here = std::env::current_dir().unwrap_or_default().display().to_string();
        let told = if here.len() > 1 { told.replace(&here, ".") } else { told.into_owned() };
        let environment = VARIABLES.map(std::env::var_os);
        format!("{version}\n{told}\n{environment:?}\n{:?}", file(&self.program))
    }

    /// Everything but the names of files, for stacks of `stack` bytes.
    fn flags(&self, stack: usize) -> Vec<String> {
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
        if let Some(folder) = object.parent() {
            // What it leaves behind when it is stopped goes with the folder.
            command.env("TMPDIR", folder);
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
                let mut compiler = Compiler { program: program.into(), arguments, about: String::new() };
                compiler.about = compiler.about(&String::from_utf8_lossy(&answer.stdout));
                return Ok(compiler);
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

/// The file of a program, its length and when it was changed.
fn file(program: &OsStr) -> Option<(PathBuf, u64, Option<SystemTime>)> {
    let known = |path: PathBuf| {
        let data = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
        Some((path, data.len(), data.modified().ok()))
    };
    match Path::new(program).components().count() {
        1 => std::env::split_paths(&std::env::var_os("PATH")?).find_map(|folder| known(folder.join(program))),
        _ => known(PathBuf::from(program)),
    }
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

    /// A compiler that is a script, which ends in `line`.
    #[cfg(unix)]
    fn script(path: &Path, line: &str) -> Compiler {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(path, format!("#!/bin/sh\n{line}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        search(path.to_str()).unwrap()
    }

    #[cfg(unix)]
    #[test]
    fn what_changes_the_object_changes_the_identity() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gxx");
        let of = |line: &str| script(&path, line).identity();
        let name = Compiler::find().unwrap().name();
        let plain = format!("exec {name} \"$@\"");
        let identity = |cxx: &str| search(Some(cxx)).unwrap().identity();
        assert_eq!(of(&plain), identity(path.to_str().unwrap()));
        let all = [
            of(&plain),
            of(&format!("exec {name} -DX \"$@\"")),
            identity(&name),
            identity(&format!("{name} -fsanitize=address")),
            identity(&format!("{name} -march=native")),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b), "{a}");
        }
        // What a wrapper takes from its environment is in what it tells.
        script(&path, &format!("exec {name} $SEAMLINE_TEST_FLAGS \"$@\""));
        let with = |flags: &str| {
            let compiler = Compiler {
                program: "env".into(),
                arguments: vec![format!("SEAMLINE_TEST_FLAGS={flags}"), path.to_str().unwrap().to_owned()],
                about: String::new(),
            };
            compiler.about("")
        };
        assert_ne!(with("-O1"), with("-DX"));
        assert_eq!(with("-DX"), with("-DX"));
    }

    #[cfg(unix)]
    #[test]
    fn a_compiler_that_is_named_from_here_is_found_from_here() {
        // A folder of this crate's that git does not know.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let here = folder.path().strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap();
        let name = Compiler::find().unwrap().name();
        let compiler = script(&Path::new(".").join(here).join("gxx"), &format!("exec {name} \"$@\""));
        let (source, object) = (folder.path().join("kernel.cpp"), folder.path().join("kernel.so"));
        std::fs::write(&source, "").unwrap();
        compiler.build("p", "", &source, &object).unwrap();
    }
}
