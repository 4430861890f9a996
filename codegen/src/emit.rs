//! Program to CUDA C++: the policy struct that the templates are instantiated with, and the entry points.

mod entry;
mod ident;
mod spec;

use crate::{Program, schedule::Geometry};
use seamline_templates as templates;

/// What is to be generated for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// One entry point each.
    pub geometries: Vec<Geometry>,
    /// Let the successor start right after the wait. It must itself wait.
    pub early_trigger: bool,
    /// Also an entry in which `blockIdx.y` is the rank: one launch runs all ranks, for sanitizers.
    pub one_grid: bool,
}

/// A generated source and its entry points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The generated part alone: arguments, policy, entries.
    pub generated: String,
    /// One per geometry, in that order; then the one-grid ones.
    pub entries: Vec<Entry>,
    /// The name under which compilers report the generated part.
    pub file_name: String,
}

/// An entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its symbol.
    pub name: String,
    /// How it deals rows.
    pub geometry: Geometry,
    /// Whether it takes `const Args*` (one per rank, by `blockIdx.y`) instead of `Args`.
    pub one_grid: bool,
}

impl Module {
    /// The whole source for NVRTC or nvcc.
    pub fn cuda(&self) -> String {
        self.with_device(templates::DEVICE)
    }

    /// The whole source over another device layer, such as the simulator's.
    pub fn with_device(&self, device: templates::File) -> String {
        let own = (self.file_name.as_str(), self.generated.as_str());
        let mut source = String::new();
        for (name, text) in [device].into_iter().chain(templates::PORTABLE).chain([own]) {
            source += &format!("#line 1 \"{name}\"\n{text}");
        }
        source
    }

    /// The entry for `geometry`.
    pub fn entry(&self, geometry: &Geometry) -> Option<&Entry> {
        self.entries.iter().find(|e| e.geometry == *geometry && !e.one_grid)
    }
}

/// Generates the source of `program` for `target`.
pub fn emit(program: &Program, target: &Target) -> Module {
    let mut generated = spec::header(program);
    generated += &spec::args(program);
    generated += &spec::policy(program);
    let entries = entry::entries(program, target);
    for entry in &entries {
        generated += &entry::text(entry, target);
    }
    Module { generated, entries, file_name: format!("pattern {}", program.name) }
}
