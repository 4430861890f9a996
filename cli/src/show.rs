//! `seamline show`.

mod launches;
mod program;

use crate::target::Target;
use crate::{Usage, Verdict, output};
use anyhow::{Context, Result};
use clap::Args;
use launches::Launch;
use seamline_codegen::emit::{self, emit};
use seamline_codegen::schedule::{DeviceModel, Planner};
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `seamline show`.
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    target: Target,
    /// Numbers of tokens to show the launches of
    #[arg(long, short, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64, 128])]
    tokens: Vec<u64>,
    /// The schedule that is expected: local or one_shot
    #[arg(long)]
    schedule: Option<String>,
    /// Writes the whole CUDA source to this file instead of showing the generated part
    #[arg(long, value_name = "FILE")]
    cuda: Option<PathBuf>,
    /// JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    pattern: String,
    hidden: u32,
    top_k: u32,
    ranks: u32,
    dtype: &'static str,
    wire: &'static str,
    phases: String,
    launches: Vec<Launch>,
    entries: Vec<String>,
    cuda: String,
}

impl Show {
    /// Prints what the pattern becomes.
    pub fn run(&self) -> Result<Verdict> {
        let graph = self.target.graph()?;
        let program = self.target.program(&graph)?;
        let planner = Planner::new(&program, DeviceModel::H200, 1, false);
        self.check_schedule(planner.schedule().name())?;
        let launches: Vec<Launch> = self
            .tokens
            .iter()
            .filter(|tokens| **tokens > 0)
            .map(|tokens| Launch::new(&planner, *tokens))
            .collect();
        let most = self.tokens.iter().copied().max().unwrap_or(1).max(1);
        let target =
            emit::Target { geometries: planner.geometries(most), early_trigger: false, one_grid: false };
        let module = emit(&program, &target);
        if let Some(file) = &self.cuda {
            std::fs::write(file, module.cuda())
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        if self.json {
            let dims = program.dims;
            output::json(&Report {
                pattern: program.name.clone(),
                hidden: dims.hidden,
                top_k: dims.top_k,
                ranks: dims.ranks,
                dtype: dims.dtype.name(),
                wire: dims.wire.name(),
                phases: program::phases(&program),
                launches,
                entries: module.entries.iter().map(|entry| entry.name.clone()).collect(),
                cuda: module.cuda(),
            })?;
            return Ok(Verdict::Good);
        }
        let mut text = program::signature(&program);
        text += &format!("\n{}", program::phases(&program));
        text += &format!("\nLaunches on an H200 with one rank per GPU\n\n{}", launches::table(&launches));
        text += &match &self.cuda {
            Some(file) => format!("\nCUDA in {}\n", file.display()),
            None => format!(
                "\nGenerated CUDA, over the templates (--cuda FILE writes all of it)\n\n{}",
                module.generated
            ),
        };
        output::print(&text)?;
        Ok(Verdict::Good)
    }

    fn check_schedule(&self, runs: &str) -> Result<(), Usage> {
        match self.schedule.as_deref() {
            None => Ok(()),
            Some(wanted) if wanted == runs => Ok(()),
            Some(wanted @ ("local" | "one_shot")) => Err(Usage(format!(
                "with --ranks {} this pattern runs as {runs}, not {wanted}: local is for one rank, one_shot for several",
                self.target.ranks
            ))),
            Some(other) => Err(Usage(format!("unknown schedule `{other}`: expected local or one_shot"))),
        }
    }
}
