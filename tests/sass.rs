//! What the machine code of every snapshot does before the wait for the kernel before: it loads the constant weights,
//! and nothing else. And that no row sum waits for what the cluster has stored to global memory.
//!
//! It needs NVRTC and, in `SEAMLINE_NVDISASM`, NVIDIA's disassembler; `cargo xtask test` provides both. No GPU.
#![cfg(feature = "cuda")]

use seamline::cuda::{__private::locate, nvrtc};
use std::path::{Path, PathBuf};
use std::process::Command;

const ARCHS: [&str; 3] = ["sm_90a", "sm_100a", "sm_120"];

/// `griddepcontrol.wait`.
const WAIT: &str = "ACQBULK";

/// A kernel of a snapshot, and how many loads its constant weights take.
#[derive(Debug, PartialEq, Eq)]
struct Kernel {
    name: String,
    constants: usize,
    /// Whether it has a barrier of the cluster after the exchange, for want of a row sum.
    releases: bool,
}

/// The kernels of a generated source.
fn kernels(source: &str) -> Vec<Kernel> {
    let hidden: usize = between(source, "HIDDEN = ", ",").parse().unwrap();
    let loads = between(source, "void load_constants", "\n  }\n");
    let per_vector: usize = loads
        .match_indices(", args.in_")
        .map(|(at, _)| {
            let name = between(&loads[at..], ", args.", ",");
            let bytes = match source.lines().find(|line| line.contains(&format!("* {name};"))) {
                Some(line) if line.contains("f32*") => 4,
                Some(_) => 2,
                None => panic!("`{name}` is no argument"),
            };
            // A lane of 8 channels, in accesses as wide as a row's size allows.
            8 * bytes / greatest_common_divisor(hidden * bytes, 16)
        })
        .sum();
    let releases = source.contains("SUMS_AFTER_EXCHANGE = false");
    let entries = source.split("SEAMLINE_KERNEL(").skip(1);
    let kernel = |entry: &str| {
        let vectors: usize = between(entry, "Geometry<", ">").split(", ").nth(2).unwrap().parse().unwrap();
        let name = between(entry, ") ", "(").to_owned();
        Kernel { name, constants: per_vector * vectors, releases }
    };
    entries.map(kernel).collect()
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// What stands between `from` and the next `to`.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let rest = text.split_once(from).unwrap_or_else(|| panic!("no `{from}` in {text}")).1;
    rest.split_once(to).unwrap_or_else(|| panic!("no `{to}` after `{from}`")).0
}

/// The instructions of a kernel, as nvdisasm prints them.
fn instructions<'a>(sass: &'a str, kernel: &str) -> Option<Vec<&'a str>> {
    let (_, rest) = sass.split_once(&format!("\n.text.{kernel}:\n"))?;
    let lines =
        rest.lines().take_while(|line| !line.starts_with("\t.section") && !line.starts_with(".section"));
    let instruction =
        |line: &'a str| line.trim().strip_prefix("/*")?.split_once("*/")?.1.trim().strip_suffix(';');
    Some(lines.filter_map(instruction).collect())
}

/// A load from global memory, which may be predicated. A generic load could be one.
fn loads(instruction: &str) -> bool {
    instruction
        .split_whitespace()
        .any(|word| word.starts_with("LDG") || word == "LD" || word.starts_with("LD."))
}

/// What is wrong with a kernel's machine code, if anything is.
fn fault(kernel: &Kernel, sass: &str) -> Option<String> {
    let Some(instructions) = instructions(sass, &kernel.name) else { return Some("is not there".into()) };
    if let Some(load) = instructions.iter().find(|i| loads(i) && i.contains(".CONSTANT")) {
        return Some(format!("reads what the kernel before may write as if nobody did: {load}"));
    }
    let Some(wait) = instructions.iter().position(|i| i.contains(WAIT)) else {
        return Some(format!("has no {WAIT}"));
    };
    // A release by a whole cluster, which is a fence for every store on its way.
    let fences = |instruction: &&&str| instruction.contains("MEMBAR") && instruction.contains(".GPU");
    if let Some(fence) = instructions.iter().find(fences).filter(|_| !kernel.releases) {
        return Some(format!("waits for all its stores: {fence}"));
    }
    let before = instructions[..wait].iter().filter(|i| loads(i)).count();
    let expected = kernel.constants;
    (before != expected)
        .then(|| format!("{before} loads before the wait, and the constant weights take {expected}"))
}

/// `cubin` in words.
fn disassembled(nvdisasm: &Path, cubin: &[u8], name: &str) -> Result<String, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sass");
    let file = folder.join(name);
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, cubin));
    written.map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    let output = Command::new(nvdisasm).arg("-c").arg(&file).output();
    let output = output.map_err(|error| format!("cannot run {}: {error}", nvdisasm.display()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// What is wrong with the kernels of one snapshot on one architecture.
fn faults(nvdisasm: &Path, snapshot: &Path, arch: &str) -> Vec<String> {
    let name = snapshot.file_name().unwrap().to_string_lossy().replace(".snap.cu", "");
    let generated = std::fs::read_to_string(snapshot).unwrap();
    let templates = [seamline_templates::DEVICE].into_iter().chain(seamline_templates::PORTABLE);
    let source = templates.map(|(_, text)| text).chain([generated.as_str()]).collect::<String>();
    let place = format!("{name} for {arch}");
    let compiled = match nvrtc::compile(&source, arch) {
        Ok(compiled) => compiled,
        Err(error) => return vec![format!("{place}: {error}")],
    };
    let sass = match disassembled(nvdisasm, &compiled.cubin, &format!("{name}.{arch}.cubin")) {
        Ok(sass) => sass,
        Err(error) => return vec![format!("{place}: {error}")],
    };
    let kernels = kernels(&generated);
    assert!(!kernels.is_empty(), "{place} has no kernel");
    let told = |kernel: &Kernel| Some(format!("{place}: {}: {}", kernel.name, fault(kernel, &sass)?));
    kernels.iter().filter_map(told).collect()
}

#[test]
fn constant_weights_alone_are_loaded_before_the_wait_and_no_row_sum_is_a_fence() {
    if let Err(error) = locate::nvrtc() {
        eprintln!("SKIPPED: {error}");
        return;
    }
    let Some(nvdisasm) = std::env::var_os("SEAMLINE_NVDISASM").map(PathBuf::from) else {
        eprintln!(
            "SKIPPED: no disassembler: set SEAMLINE_NVDISASM to an nvdisasm, as `cargo xtask test` does"
        );
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let snapshots: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(".snap.cu")).collect();
    assert!(snapshots.len() >= 14, "{snapshots:?}");
    let jobs: Vec<_> = snapshots.iter().flat_map(|snapshot| ARCHS.map(|arch| (snapshot, arch))).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let faults: Vec<String> = std::thread::scope(|scope| {
        let share = |part: usize| {
            let jobs = jobs.iter().skip(part).step_by(threads);
            jobs.flat_map(|(snapshot, arch)| faults(&nvdisasm, snapshot, arch)).collect::<Vec<_>>()
        };
        let workers: Vec<_> = (0..threads).map(|part| scope.spawn(move || share(part))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn what_is_wrong_in_machine_code_is_seen() {
    let sass = |before: &str, after: &str| {
        format!(
            "\t.section\t.text.k,\"ax\"\n.text.k:\n        /*0000*/                   LDC R1, c[0x0][0x28] ;\n{before}\
             .L_x_0:\n        /*0010*/                   ACQBULK ;\n{after}\t.section\t.text.other,\"ax\"\n\
             .text.other:\n        /*0000*/                   LDG.E.CONSTANT R0, desc[UR4][R2.64] ;\n"
        )
    };
    let load = "        /*0020*/              @!P0 LDG.E.NA.128 R4, desc[UR4][R2.64] ;\n";
    let constant = "        /*0020*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;\n";
    let kernel = |constants| Kernel { name: "k".into(), constants, releases: false };
    assert_eq!(fault(&kernel(1), &sass(load, load)), None);
    assert!(fault(&kernel(1), &sass("", load)).unwrap().starts_with("0 loads before the wait"));
    assert!(fault(&kernel(0), &sass(load, "")).unwrap().starts_with("1 loads before the wait"));
    assert!(fault(&kernel(1), &sass(load, constant)).unwrap().contains("LDG.E.128.CONSTANT"));
    let fence = "        /*0020*/                   MEMBAR.ALL.GPU ;\n";
    assert!(fault(&kernel(1), &sass(load, fence)).unwrap().contains("waits for all its stores"));
    assert_eq!(fault(&Kernel { releases: true, ..kernel(1) }, &sass(load, fence)), None);
    assert!(fault(&kernel(1), &sass(load, "").replace(WAIT, "NOP")).unwrap().contains("has no ACQBULK"));
    assert!(
        fault(&Kernel { name: "l".into(), ..kernel(0) }, &sass("", "")).unwrap().contains("is not there")
    );
}

#[test]
fn loads_of_constant_weights_are_counted_from_the_source() {
    let source = "const bf16* in_x;  // [T, H]\n  const f32* in_bias;  // [H]\n  const bf16* in_gamma;  // [H]\n\
        HIDDEN = 1004, TOP_K = 0\n  void load_constants(const Args& args) {\n    \
        load_lane<Constant, HIDDEN>(row.in_bias[v], args.in_bias, row.lane[v]);\n    \
        load_lane<Constant, HIDDEN>(row.in_gamma[v], args.in_gamma, row.lane[v]);\n  }\n\
        SEAMLINE_KERNEL(64, 2) k_1x64(SEAMLINE_PARAM Args args) {\n  local<Spec, Geometry<1, 64, 2, 8, true, false>>";
    // Rows of f32 are multiples of 16 bytes, those of bf16 of 8: two loads a lane each; two lanes.
    assert_eq!(kernels(source), [Kernel { name: "k_1x64".into(), constants: 8, releases: false }]);
}
