//! `seamline list`.

use crate::table::Table;
use crate::{Verdict, output};
use anyhow::Result;
use clap::Args;
use serde::Serialize;

/// Arguments of `seamline list`.
#[derive(Args)]
pub struct List {
    /// JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    name: String,
    about: &'static str,
    models: &'static str,
    parameters: Vec<String>,
    outputs: Vec<String>,
}

impl List {
    /// Prints the ready-made patterns.
    pub fn run(&self) -> Result<Verdict> {
        if self.json {
            let rows = seamline::patterns::ALL.iter().map(|listed| Row {
                name: listed.graph.name.to_string(),
                about: listed.about,
                models: listed.models,
                parameters: listed.graph.params.iter().map(|p| p.name.to_string()).collect(),
                outputs: listed.graph.outputs.iter().map(|o| o.name.to_string()).collect(),
            });
            output::json(&rows.collect::<Vec<_>>())?;
            return Ok(Verdict::Good);
        }
        let mut table = Table::new(&["pattern", "what it fuses", "models"]);
        for listed in seamline::patterns::ALL {
            table.row([listed.graph.name.as_ref(), listed.about, listed.models]);
        }
        output::print(&format!(
            "{table}\nIn Rust: seamline::patterns. To see one: seamline show --pattern NAME --set hidden=7168 top_k=8\n"
        ))?;
        Ok(Verdict::Good)
    }
}
