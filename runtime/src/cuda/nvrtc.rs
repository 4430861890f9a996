//! CUDA C++ to CUBIN.
//!
//! NVRTC is looked for in this order: `SEAMLINE_NVRTC_PATH` (which, when set, decides alone), the loader's own
//! paths, `CUDA_PATH` and `CUDA_HOME`, `/usr/local/cuda*`, the conda environment, and pip's `nvidia/*`
//! packages; the first that can be used is taken. A library in a folder that the loader does not know is loaded by its absolute path,
//! `libnvrtc-builtins` before it: NVRTC would look for that one on the loader's paths.

use super::driver;
use super::excerpt::excerpt;
use super::library::{self, COMPILATION, Functions};
use super::locate;
use crate::error::{Error, ErrorKind};
use crate::sync::lock;
use crate::testing::count_compile;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::ffi::{CStr, CString, OsString, c_int};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// What the rounding contract and the templates need.
const OPTIONS: [&str; 3] = ["--std=c++17", "--fmad=false", "--ptxas-options=-v"];
/// What saves time: leaving out what generated code never names (textures, the device runtime), a tenth; compiling the
/// entries of a source on all cores, a quarter of the time on two.
const FASTER: [&str; 2] = ["--minimal", "--split-compile=0"];
/// Keeps NVRTC from the driver's cache of compiled code. To look into it NVRTC initialises the driver, which takes longer
/// than to compile a kernel, unless the process has done so anyway.
const NO_CACHE: &str = "--no-cache";
/// The oldest NVRTC on which these were tried.
const HAS_FASTER: (i32, i32) = (13, 0);

/// A compiled source.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// Machine code, to be loaded by the driver.
    pub cubin: Vec<u8>,
    /// What it was compiled for.
    pub arch: String,
    /// What each kernel uses, in the order of the source; nothing where the code came from the driver's cache, which
    /// keeps no log.
    pub entries: Vec<Resources>,
    /// All that the compiler said.
    pub log: String,
    /// How long it took.
    pub took: Duration,
}

/// What a kernel uses of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resources {
    /// Its symbol.
    pub entry: String,
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of spilled registers that are stored.
    pub spill_stores: u32,
    /// Bytes of spilled registers that are loaded.
    pub spill_loads: u32,
    /// Bytes of stack per thread.
    pub stack: u32,
    /// Bytes of shared memory per block.
    pub shared: u32,
}

/// Compiles `source` for a real architecture such as `sm_90a`, or answers what this process has compiled of
/// it before, or why it does not compile. Other errors are not remembered: what caused them may pass.
///
/// # Errors
/// [`ErrorKind::NoNvrtc`] and its kin; [`ErrorKind::OldNvrtc`]; [`ErrorKind::Compile`].
pub fn compile(source: &str, arch: &str) -> Result<Arc<Compiled>, Error> {
    type Slot = Arc<Mutex<Option<Result<Arc<Compiled>, Error>>>>;
    type Key = ([u8; 32], String);
    static CACHE: OnceLock<Mutex<HashMap<Key, Slot>>> = OnceLock::new();
    let key = (Sha256::digest(source).into(), arch.to_owned());
    let slot = {
        let mut cache = lock(CACHE.get_or_init(Mutex::default));
        Arc::clone(cache.entry(key).or_default())
    };
    // Whoever else wants the same waits here; other sources compile beside it.
    let mut slot = lock(&slot);
    if let Some(known) = &*slot {
        return known.clone();
    }
    let result = compile_now(source, arch).map(Arc::new);
    if result.as_ref().err().is_none_or(|e| matches!(e.kind(), ErrorKind::Compile { .. })) {
        *slot = Some(result.clone());
    }
    result
}

/// Compiles several sources at once, on as many threads as the machine has cores.
pub(super) fn compile_all(sources: &[String], arch: &str) -> Result<Vec<Arc<Compiled>>, Error> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut compiled = Vec::with_capacity(sources.len());
    for some in sources.chunks(workers) {
        let results = std::thread::scope(|scope| {
            let rest: Vec<_> = some[1..]
                .iter()
                .map(|source| Builder::new().spawn_scoped(scope, || compile(source, arch)))
                .collect();
            let first = compile(&some[0], arch);
            let rest = rest.into_iter().zip(&some[1..]).map(|(thread, source)| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // The system has no thread to spare.
                Err(_) => compile(source, arch),
            });
            std::iter::once(first).chain(rest).collect::<Result<Vec<_>, Error>>()
        });
        compiled.extend(results?);
    }
    Ok(compiled)
}

fn compile_now(source: &str, arch: &str) -> Result<Compiled, Error> {
    let (nvrtc, functions) = locate::loaded()?;
    known(nvrtc, arch)?;
    let began = Instant::now();
    let program = Program::new(functions, &c_string(source)?)?;
    let mut options: Vec<String> = OPTIONS.map(str::to_owned).to_vec();
    options.push(format!("--gpu-architecture={arch}"));
    if nvrtc.version >= HAS_FASTER {
        options.extend(FASTER.map(str::to_owned));
        if !driver::loaded() {
            options.push(NO_CACHE.into());
        }
    }
    if on(std::env::var_os("SEAMLINE_LINEINFO")) {
        options.push("--generate-line-info".into());
    }
    let options = options.iter().map(|o| c_string(o)).collect::<Result<Vec<_>, Error>>()?;
    let code = program.compile(&options);
    let log = program.log()?;
    if code == COMPILATION {
        let excerpt = excerpt(source, &log);
        return Err(ErrorKind::Compile { arch: arch.to_owned(), excerpt, log }.into());
    }
    functions.result(code).map_err(|error| failed("compiling", &format!("{error}: {}", log.trim())))?;
    let cubin = program.cubin()?;
    count_compile();
    let compiled =
        Compiled { cubin, arch: arch.to_owned(), entries: resources(&log), log, took: began.elapsed() };
    tracing::debug!(arch, took = ?compiled.took, bytes = compiled.cubin.len(), "compiled");
    dump(source, &compiled);
    Ok(compiled)
}

/// Whether a variable is set to anything but nothing and 0.
fn on(variable: Option<OsString>) -> bool {
    variable.is_some_and(|value| !value.is_empty() && value != "0")
}

/// `sm_90a` needs 90 among what NVRTC knows.
fn known(nvrtc: &locate::Nvrtc, arch: &str) -> Result<(), Error> {
    let number = arch.trim_start_matches("sm_").trim_end_matches(|c: char| c.is_ascii_lowercase()).parse();
    match number.is_ok_and(|n: i32| arch.starts_with("sm_") && nvrtc.archs.contains(&n)) {
        true => Ok(()),
        false => {
            let known: Vec<_> = nvrtc.archs.iter().map(|n| format!("sm_{n}")).collect();
            Err(ErrorKind::OldNvrtc {
                version: nvrtc.version,
                arch: arch.to_owned(),
                known: known.join(", "),
            }
            .into())
        }
    }
}

/// A program of NVRTC's, destroyed with this.
struct Program {
    functions: &'static Functions,
    handle: library::Program,
}

impl Program {
    fn new(functions: &'static Functions, text: &CStr) -> Result<Program, Error> {
        let mut handle = std::ptr::null_mut();
        let (name, none) = (c"seamline.cu", std::ptr::null());
        // SAFETY: two C strings, of which NVRTC makes copies, and no headers.
        let code = unsafe { (functions.create)(&mut handle, text.as_ptr(), name.as_ptr(), 0, none, none) };
        functions.result(code).map_err(|e| failed("creating the program", &e))?;
        Ok(Program { functions, handle })
    }

    fn compile(&self, options: &[CString]) -> c_int {
        let options: Vec<_> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: the program is alive; so many C strings.
        unsafe { (self.functions.compile)(self.handle, options.len() as c_int, options.as_ptr()) }
    }

    fn log(&self) -> Result<String, Error> {
        let failed = |e: String| failed("reading the log", &e);
        let mut size = 0;
        // SAFETY: the program is alive.
        let code = unsafe { (self.functions.log_size)(self.handle, &mut size) };
        self.functions.result(code).map_err(failed)?;
        let mut log = vec![0u8; size];
        // SAFETY: it writes as many bytes as it has said.
        let code = unsafe { (self.functions.log)(self.handle, log.as_mut_ptr().cast()) };
        self.functions.result(code).map_err(failed)?;
        // It ends with a zero.
        let text = log.split(|b| *b == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn cubin(&self) -> Result<Vec<u8>, Error> {
        let failed_to = |e: String| failed("reading the machine code", &e);
        let mut size = 0;
        // SAFETY: the program is alive and compiled.
        let code = unsafe { (self.functions.cubin_size)(self.handle, &mut size) };
        self.functions.result(code).map_err(failed_to)?;
        let mut cubin = vec![0u8; size];
        // SAFETY: it writes as many bytes as it has said.
        let code = unsafe { (self.functions.cubin)(self.handle, cubin.as_mut_ptr().cast()) };
        self.functions.result(code).map_err(failed_to)?;
        match cubin.is_empty() {
            // What a virtual architecture gives.
            true => Err(failed("compiling", "there is no machine code")),
            false => Ok(cubin),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: it was created by `new` and is destroyed once. That it fails would help nobody to know.
        unsafe { (self.functions.destroy)(&mut self.handle) };
    }
}

fn c_string(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| failed("creating the program", "the source holds a zero byte"))
}

fn failed(doing: &str, reason: &str) -> Error {
    let path = locate::nvrtc().ok().and_then(|n| n.path.clone());
    let path = path.map_or("the loader's path".into(), |p| p.display().to_string());
    ErrorKind::BadNvrtc { path, reason: format!("{doing}: {reason}") }.into()
}

/// What `--ptxas-options=-v` says of each kernel.
fn resources(log: &str) -> Vec<Resources> {
    let mut all: Vec<Resources> = Vec::new();
    for line in log.lines() {
        if let Some(name) =
            line.split("Compiling entry function '").nth(1).and_then(|rest| rest.split('\'').next())
        {
            all.push(Resources { entry: name.to_owned(), ..Resources::default() });
        }
        let Some(usage) = all.last_mut() else { continue };
        // `Used 30 registers, used 1 barriers, 128 bytes smem`; `0 bytes stack frame, 0 bytes spill stores,
        // …`
        for part in line.split(',') {
            let number = part.split_whitespace().find_map(|word| word.parse::<u32>().ok());
            let Some(number) = number else { continue };
            for (words, to) in [
                ("registers", &mut usage.registers),
                ("bytes spill stores", &mut usage.spill_stores),
                ("bytes spill loads", &mut usage.spill_loads),
                ("bytes stack frame", &mut usage.stack),
                ("bytes smem", &mut usage.shared),
            ] {
                if part.contains(words) {
                    *to = number;
                }
            }
        }
    }
    all
}

/// Writes source, machine code and log to `SEAMLINE_DUMP_DIR`, if that is set. That it fails is told, and
/// fails nothing.
fn dump(source: &str, compiled: &Compiled) {
    let Some(folder) = std::env::var_os("SEAMLINE_DUMP_DIR").filter(|v| !v.is_empty()) else { return };
    let folder = std::path::PathBuf::from(folder);
    let first = compiled.entries.first().map_or("kernel", |u| u.entry.as_str());
    let hash: String = Sha256::digest(source)[..6].iter().map(|b| format!("{b:02x}")).collect();
    let stem = format!("{first}-{hash}.{}", compiled.arch);
    let write =
        |extension: &str, bytes: &[u8]| std::fs::write(folder.join(format!("{stem}.{extension}")), bytes);
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| write("cu", source.as_bytes()))
        .and_then(|()| write("cubin", &compiled.cubin))
        .and_then(|()| write("log", compiled.log.as_bytes()));
    if let Err(error) = written {
        tracing::warn!("SEAMLINE_DUMP_DIR: cannot write to {}: {error}", folder.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_is_none() {
        assert!(on(Some("1".into())) && on(Some("yes".into())));
        assert!(!on(None) && !on(Some("".into())) && !on(Some("0".into())));
    }

    #[test]
    fn the_assemblers_log_is_read() {
        let log = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90a'
ptxas info    : Function properties for first
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 30 registers, used 1 barriers, 16 bytes cumulative stack size, 128 bytes smem
ptxas info    : Compiling entry function 'second' for 'sm_90a'
ptxas info    : Used 255 registers, used 0 barriers
";
        let first = Resources {
            entry: "first".into(),
            registers: 30,
            spill_stores: 8,
            spill_loads: 4,
            stack: 16,
            shared: 128,
        };
        let second = Resources { entry: "second".into(), registers: 255, ..Resources::default() };
        assert_eq!(resources(log), [first, second]);
    }
}
