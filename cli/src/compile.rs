//! Compiles a generated module for an architecture and sums up what its entries use.

use anyhow::Result;
use seamline::cuda::nvrtc;
use seamline_codegen::emit::Module;
use serde::Serialize;
use std::time::Duration;

/// The architectures that seamline is made for: Hopper, Blackwell of data centres, Blackwell of workstations.
pub const ARCHS: [&str; 3] = ["sm_90a", "sm_100a", "sm_120"];

/// Every architecture that kernels can be compiled for: clusters and dependent launches begin with Hopper. `a` has features of
/// that chip alone, `f` those of its family.
pub const KNOWN: [&str; 17] = [
    "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_103", "sm_103a", "sm_103f", "sm_110", "sm_110a",
    "sm_110f", "sm_120", "sm_120a", "sm_120f", "sm_121", "sm_121a", "sm_121f",
];

/// A module, compiled.
#[derive(Serialize)]
pub struct Compiled {
    pub arch: String,
    pub cubin_bytes: usize,
    #[serde(serialize_with = "milliseconds", rename = "ms")]
    pub time: Duration,
    pub entries: Vec<Entry>,
}

/// What one entry uses.
#[derive(Serialize)]
pub struct Entry {
    pub name: String,
    pub registers: u32,
    /// Stores and loads together.
    pub spill_bytes: u32,
    pub shared_bytes: u32,
}

fn milliseconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64() * 1e3)
}

/// Compiles `module` for `arch` with this machine's NVRTC; no GPU is needed.
pub fn compile(module: &Module, arch: &str) -> Result<Compiled> {
    let compiled = nvrtc::compile(&module.cuda(), arch)?;
    let entries = compiled.entries.iter().map(|usage| Entry {
        name: usage.entry.clone(),
        registers: usage.registers,
        spill_bytes: usage.spill_stores + usage.spill_loads,
        shared_bytes: usage.shared,
    });
    Ok(Compiled {
        arch: compiled.arch.clone(),
        cubin_bytes: compiled.cubin.len(),
        time: compiled.took,
        entries: entries.collect(),
    })
}

impl Compiled {
    /// The entries' registers per thread: `40` or `40-64`.
    pub fn registers(&self) -> String {
        let all = || self.entries.iter().map(|entry| entry.registers);
        match (all().min(), all().max()) {
            (Some(least), Some(most)) if least == most => least.to_string(),
            (Some(least), Some(most)) => format!("{least}-{most}"),
            _ => String::new(),
        }
    }

    /// Spilled bytes of all entries.
    pub fn spill_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| u64::from(entry.spill_bytes)).sum()
    }
}
