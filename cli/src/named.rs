//! Patterns by name: the ready-made ones, and those of a source file.

use crate::{Usage, located, output};
use anyhow::{Result, anyhow};
use seamline::Graph;
use seamline_codegen::parse::SourceFile;
use std::io::Write;
use std::path::Path;

/// A pattern, and what it is called.
pub struct Named {
    /// The modules and fns that it is in, and its name: `module::name`.
    pub path: String,
    /// The line of its source file.
    pub line: Option<usize>,
    pub graph: Graph,
}

/// Patterns, and where they are from.
pub struct Patterns {
    pub all: Vec<Named>,
    place: String,
}

impl Patterns {
    /// The patterns of a source file; without one, the ready-made ones.
    pub fn of(file: Option<&Path>) -> Result<Patterns> {
        match file {
            Some(file) => Patterns::read(file),
            None => Ok(Patterns { all: ready_made(), place: "the ready-made patterns".to_owned() }),
        }
    }

    fn read(file: &Path) -> Result<Patterns> {
        let name = file.display();
        let source =
            std::fs::read_to_string(file).map_err(|error| Usage(format!("cannot read {name}: {error}")))?;
        let parsed = SourceFile::parse(&source).map_err(|errors| {
            anyhow!("the patterns of {name} cannot be compiled\n{}", located::text(&errors))
        })?;
        for line in parsed.in_macros {
            // Whoever closes standard error does not want it.
            let _ = writeln!(
                std::io::stderr(),
                "note: {}:{line}: a pattern in a macro is left out, since what becomes of it is not known here: write it as a fn",
                output::visible(&name.to_string())
            );
        }
        let all = parsed.patterns.into_iter();
        let all = all.map(|found| Named { path: found.path, line: Some(found.line), graph: found.graph });
        Ok(Patterns { all: all.collect(), place: format!("the patterns of {name}") })
    }

    /// All of them, of which there must be one.
    pub fn some(self) -> Result<Vec<Named>, Usage> {
        match self.all.is_empty() {
            true => {
                Err(Usage(format!("{}: there are none, that is, no fn under #[fused_pattern]", self.place)))
            }
            false => Ok(self.all),
        }
    }

    /// The one that is called `name`, which is a path or the end of one.
    pub fn called(self, name: &str) -> Result<Named, Usage> {
        let place = self.place.clone();
        let (named, others): (Vec<_>, Vec<_>) = self.some()?.into_iter().partition(|n| n.is_called(name));
        // A whole path tells `seam` from `module::seam`.
        let (mut whole, named): (Vec<_>, Vec<_>) = named.into_iter().partition(|n| n.path == name);
        match (whole.len(), named.len()) {
            (1, _) => Ok(whole.remove(0)),
            (0, 1) => named.into_iter().next().ok_or_else(|| unknown(name, &place, &others)),
            (0, 0) => Err(unknown(name, &place, &others)),
            (0, _) => Err(Usage(format!(
                "`{name}` is the name of several among {place}: choose one by its path: {}",
                list(&named)
            ))),
            _ => Err(Usage(format!(
                "`{name}` is the path of several among {place}, which `cfg` alone tells apart: give each a name or a module of its own: {}",
                list(&whole)
            ))),
        }
    }

    /// The only one.
    pub fn only(self) -> Result<Named, Usage> {
        let place = self.place.clone();
        let mut all = self.some()?;
        match all.len() {
            1 => Ok(all.remove(0)),
            _ => Err(Usage(format!("{place} are several: choose one with --pattern: {}", list(&all)))),
        }
    }
}

impl Named {
    fn is_called(&self, name: &str) -> bool {
        self.path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
    }
}

fn ready_made() -> Vec<Named> {
    let all = seamline::patterns::ALL.iter().map(|listed| &listed.graph);
    all.map(|graph| Named { path: graph.name.to_string(), line: None, graph: (*graph).clone() }).collect()
}

fn unknown(name: &str, place: &str, others: &[Named]) -> Usage {
    Usage(format!("no `{name}` among {place}: there are {}", list(others)))
}

fn list(patterns: &[Named]) -> String {
    let one = |named: &Named| match named.line {
        Some(line) => format!("{} (line {line})", named.path),
        None => named.path.clone(),
    };
    patterns.iter().map(one).collect::<Vec<_>>().join(", ")
}
