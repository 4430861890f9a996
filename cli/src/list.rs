//! `seamline list`.

use crate::arguments::{Arguments, FixedDims};
use crate::named::{Named, Patterns};
use crate::table::Table;
use crate::{Verdict, output};
use anyhow::Result;
use clap::Args;
use seamline::Graph;
use seamline::patterns::ALL;
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `seamline list`.
#[derive(Args)]
pub struct List {
    /// A Rust source file with patterns; without one, the ready-made patterns
    file: Option<PathBuf>,
    /// JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    /// What `--pattern` takes.
    path: String,
    name: String,
    #[serde(flatten)]
    arguments: Arguments,
    /// What the attribute fixes.
    fixed: FixedDims,
    #[serde(flatten)]
    origin: Origin,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Origin {
    ReadyMade { about: &'static str, models: &'static str },
    File { line: Option<usize> },
}

impl List {
    /// Prints the patterns.
    pub fn run(&self) -> Result<Verdict> {
        match &self.file {
            None => self.ready_made(),
            Some(_) => self.source(Patterns::of(self.file.as_deref())?.some()?),
        }?;
        Ok(Verdict::Good)
    }

    fn ready_made(&self) -> Result<()> {
        if self.json {
            let rows = ALL.iter().map(|listed| {
                let origin = Origin::ReadyMade { about: listed.about, models: listed.models };
                row(listed.graph.name.to_string(), listed.graph, origin)
            });
            return output::json(&rows.collect::<Vec<_>>());
        }
        let mut table = Table::new(&["pattern", "what it fuses", "models"]);
        for listed in ALL {
            table.row([listed.graph.name.as_ref(), listed.about, listed.models]);
        }
        output::print(&format!(
            "{table}\nIn Rust: seamline::patterns. To see one: seamline show --pattern NAME --set hidden=7168 top_k=8\n"
        ))
    }

    fn source(&self, patterns: Vec<Named>) -> Result<()> {
        if self.json {
            let rows = patterns
                .into_iter()
                .map(|Named { path, line, graph }| row(path, &graph, Origin::File { line }));
            return output::json(&rows.collect::<Vec<_>>());
        }
        let texts = patterns.into_iter().map(|Named { path, line, graph }| {
            let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
            let fixed = FixedDims::of(&graph.fixed).text();
            let fixed = if fixed.is_empty() { fixed } else { format!(": {fixed}") };
            format!("{path}{line}{fixed}\n{}", Arguments::of_graph(&graph).table())
        });
        output::print(&texts.collect::<Vec<_>>().join("\n"))
    }
}

fn row(path: String, graph: &Graph, origin: Origin) -> Row {
    let (arguments, fixed) = (Arguments::of_graph(graph), FixedDims::of(&graph.fixed));
    Row { path, name: graph.name.to_string(), arguments, fixed, origin }
}
