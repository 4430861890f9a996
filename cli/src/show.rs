//! `seamline show`.

mod launches;
pub mod program;

use crate::compile::{Compiled, KNOWN, compile};
use crate::table::Table;
use crate::target::{Target, schedule_names};
use crate::{Usage, Verdict, output};
use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;
use launches::Launch;
use seamline_codegen::emit::{self, emit};
use seamline_codegen::schedule::{DeviceModel, Geometry, Planner, Schedule};
use seamline_codegen::{MAX_TOKENS, Program};
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `seamline show`.
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    target: Target,
    /// Numbers of tokens to show the launches of
    #[arg(long, short, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64, 128])]
    #[arg(value_parser = clap::value_parser!(u64).range(..=MAX_TOKENS))]
    tokens: Vec<u64>,
    /// Leaves out the geometries that only fewer tokens than these take
    #[arg(long)]
    exact: bool,
    /// Architectures to compile for; none compiles for none
    #[arg(long, value_delimiter = ',', value_name = "ARCH", default_value = "sm_90a")]
    #[arg(value_parser = PossibleValuesParser::new(KNOWN.into_iter().chain(["none"])))]
    arch: Vec<String>,
    /// The schedule; without it, the one that is taken
    #[arg(long, value_parser = schedule_names())]
    schedule: Option<Schedule>,
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
    compiled: Vec<Compiled>,
    not_compiled: Option<String>,
    cuda: String,
}

impl Show {
    /// Prints what the pattern becomes.
    pub fn run(&self) -> Result<Verdict> {
        let graph = self.target.graph()?;
        let program = self.target.program(&graph)?;
        let planner = Planner::new(&program, DeviceModel::H200, 1, false)
            .with_schedules(self.schedule(&program)?.map(|schedule| (1, schedule)));
        let launches: Vec<Launch> = self
            .tokens
            .iter()
            .filter(|tokens| **tokens > 0)
            .map(|tokens| Launch::new(&planner, *tokens))
            .collect();
        let geometries = self.geometries(&planner);
        let module = emit(&program, &emit::Target { geometries, early_trigger: false, one_grid: false });
        if let Some(file) = &self.cuda {
            std::fs::write(file, module.cuda())
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        let (compiled, not_compiled) = match self.compile(&module) {
            Ok(compiled) => (compiled, None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        let verdict = if not_compiled.is_some() { Verdict::Bad } else { Verdict::Good };
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
                compiled,
                not_compiled,
                cuda: module.cuda(),
            })?;
            return Ok(verdict);
        }
        let mut text = program::signature(&program);
        text += &format!("\n{}", program::phases(&program));
        text += &format!("\nLaunches on an H200 with one rank per GPU\n\n{}", launches::table(&launches));
        text += &match &not_compiled {
            Some(why) => format!("\nnot compiled: {why}\n"),
            None => usage(&compiled),
        };
        text += &match &self.cuda {
            Some(file) => format!("\nCUDA in {}\n", file.display()),
            None => format!(
                "\nGenerated CUDA, over the templates (--cuda FILE writes all of it)\n\n{}",
                module.generated
            ),
        };
        output::print(&text)?;
        Ok(verdict)
    }

    /// The geometries to compile: those that a kernel for so many tokens is prepared with, or of these tokens alone.
    fn geometries(&self, planner: &Planner<'_>) -> Vec<Geometry> {
        let launched = self.tokens.iter().map(|tokens| (*tokens).clamp(1, launches::most(planner)));
        if !self.exact {
            return planner.geometries(launched.max().unwrap_or(1));
        }
        let mut geometries = Vec::new();
        for geometry in launched.map(|tokens| planner.shape(tokens).geometry) {
            if !geometries.contains(&geometry) {
                geometries.push(geometry);
            }
        }
        geometries
    }

    fn compile(&self, module: &emit::Module) -> Result<Vec<Compiled>> {
        let archs = self.arch.iter().filter(|arch| *arch != "none");
        archs.map(|arch| compile(module, arch)).collect()
    }

    /// The schedule that is asked for, if it can run the program.
    fn schedule(&self, program: &Program) -> Result<Option<Schedule>, Usage> {
        let refused = self.schedule.and_then(|schedule| Some((schedule, schedule.refusal(program)?)));
        match refused {
            None => Ok(self.schedule),
            Some((schedule, reason)) => Err(Usage(format!(
                "`{}` cannot run `{}` with --ranks {}: {reason}",
                schedule.name(),
                program.name,
                self.target.ranks
            ))),
        }
    }
}

/// What each entry uses on each architecture.
fn usage(compiled: &[Compiled]) -> String {
    if compiled.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["arch", "entry", "registers", "spilled bytes", "shared bytes"]);
    for compiled in compiled {
        for entry in &compiled.entries {
            table.row([
                compiled.arch.clone(),
                entry.name.clone(),
                entry.registers.to_string(),
                entry.spill_bytes.to_string(),
                entry.shared_bytes.to_string(),
            ]);
        }
    }
    let sizes = compiled.iter().map(|c| {
        let ms = c.time.as_secs_f64() * 1e3;
        format!("{} {} KiB in {ms:.0} ms", c.arch, c.cubin_bytes.div_ceil(1024))
    });
    format!("\nCompiled: {}\n\n{table}", sizes.collect::<Vec<_>>().join(", "))
}
