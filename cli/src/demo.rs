//! `seamline demo`: the seam of Kimi-K2.5, end to end, on this machine.

use crate::compile::{self, Compiled};
use crate::execute::execute;
use crate::places::{self, Place};
use crate::show::program;
use crate::table::Table;
use crate::target::{HIDDEN, MOST_TOKENS, RANKS};
use crate::{Verdict, output};
use anyhow::{Context, Result};
use clap::Args;
use seamline::patterns::MoeFinalizeArResidualRmsnorm;
use seamline::testing::{Expected, Kind, Workload};
use seamline::{DType, Definition};
use seamline_codegen::emit::{Target, emit};
use seamline_codegen::schedule::{DeviceModel, Planner};
use seamline_codegen::tensor::Dim;
use seamline_codegen::workload::Argument;
use seamline_codegen::{Dims, Presence, Program, Request};
use serde::Serialize;
use std::path::{Path, PathBuf};

const WORKLOAD: &str = "workload: 8 of 384 experts by their sigmoid scores, weights normalised and times 2.827; rows sorted by expert and
          padded to tiles; outlier channels; experts of other ranks are -1 where it is expert-parallel";

const NOTE: &str = "bits: against the reference; error: relative L2 against the same sums in f64
build and run: time on the host, not the kernel's";

/// Arguments of `seamline demo`.
#[derive(Args)]
pub struct Demo {
    /// Numbers of tokens to run
    #[arg(long, short, value_delimiter = ',', default_values_t = [1, 64])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MOST_TOKENS))]
    tokens: Vec<u64>,
    /// How many ranks exchange
    #[arg(long, short = 'n', default_value_t = 8, value_parser = clap::value_parser!(u32).range(RANKS))]
    ranks: u32,
    /// Channels of a token
    #[arg(long, default_value_t = 7168, value_parser = clap::value_parser!(u32).range(HIDDEN))]
    hidden: u32,
    /// The folder for the generated CUDA; without it, none is written
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// JSON
    #[arg(long)]
    json: bool,
}

/// One line of the table.
#[derive(Serialize)]
struct Row {
    what: String,
    /// Whether it ran at all.
    ran: bool,
    good: bool,
    result: String,
    /// Why not.
    reason: Option<String>,
    registers: Option<String>,
    spill_bytes: Option<u64>,
    cubin_bytes: Option<usize>,
    /// Relative L2 error against f64, per output.
    errors: Option<Vec<f64>>,
    prepare_ms: Option<f64>,
    run_ms: Option<f64>,
}

impl Demo {
    /// Compiles, runs and compares; the verdict is good only if everything ran and all bits are equal.
    pub fn run(&self) -> Result<Verdict> {
        let graph = MoeFinalizeArResidualRmsnorm::GRAPH;
        let request = Request {
            hidden: Some(self.hidden),
            top_k: Some(8),
            dtype: Some(DType::Bf16),
            ranks: self.ranks,
        };
        let bind = |error| crate::Usage(format!("{error}"));
        let dims = Dims::bind(graph, &request, Presence::ALL).map_err(bind)?;
        let program = graph.bind(&dims).context("cannot bind the pattern")?;
        let most = self.tokens.iter().copied().max().unwrap_or(1);
        let geometries = Planner::new(&program, DeviceModel::H200, 1, false).geometries(most);
        let module = emit(&program, &Target { geometries, early_trigger: false, one_grid: false });
        let place = match &self.out {
            Some(folder) => write(folder, &format!("{}.cu", program.name), &module.cuda())?,
            None => "written with --out DIR".to_owned(),
        };
        if !self.json {
            let (signature, phases) =
                (program::signature(&program), program::text(&program::phases(&program)));
            output::print(&format!("{signature}\n{phases}\ngenerated CUDA: {place}\n{WORKLOAD}\n\n"))?;
        }

        let archs = compile::ARCHS.iter().map(|arch| {
            output::progress(&format!("compiling for {arch}"));
            compiled(arch, &compile::compile(&module, arch))
        });
        let mut rows: Vec<Row> = archs.collect();
        rows.extend(self.runs(&program));
        output::progress("");
        self.print(&program, &rows)?;
        Ok(if rows.iter().all(|row| row.good) { Verdict::Good } else { Verdict::Bad })
    }

    /// The generated source on the GPU where there is one, else in the simulator.
    fn runs(&self, program: &Program) -> Vec<Row> {
        let place = places::best(self.ranks);
        let kinds = [Kind::KIMI_K2, Kind::KIMI_K2_EXPERT_PARALLEL];
        let runs = self.tokens.iter().flat_map(|tokens| kinds.map(|kind| (*tokens as usize, kind)));
        let rows = runs.map(|(tokens, kind)| {
            let what = |name: &str| format!("run {name}, T={tokens}, {kind}");
            match &place {
                Err(why) => Row::not_run(what("anywhere"), &output::chain(why)),
                Ok(place) => self.run_one(program, place, what(place.name), tokens, kind),
            }
        });
        rows.collect()
    }

    fn run_one(&self, program: &Program, place: &Place, what: String, tokens: usize, kind: Kind) -> Row {
        let graph = MoeFinalizeArResidualRmsnorm::GRAPH;
        let workload = Workload::new(program, tokens, 0x5EA3, kind);
        let what = format!("{what}, P={}", permuted_rows(program, &workload));
        output::progress(&what);
        let compared = execute(graph, program, &place.ranks, &workload).and_then(|executed| {
            let expected = Expected::new(program, &workload).context("the reference cannot run")?;
            let comparison = expected.compare(program, &executed.ran.outputs);
            Ok((executed, comparison))
        });
        let (executed, comparison) = match compared {
            Ok(compared) => compared,
            Err(error) => return Row::not_run(what, &output::chain(&error)),
        };
        let equal = if comparison.is_equal() { "bits equal" } else { "BITS DIFFER; equal" };
        Row {
            good: comparison.is_equal(),
            result: format!("{equal} on {} of {} ranks", comparison.equal_ranks, comparison.ranks),
            reason: comparison.difference.map(|difference| difference.to_string()),
            errors: Some(comparison.errors),
            prepare_ms: Some(executed.prepared_in.as_secs_f64() * 1e3),
            run_ms: Some(executed.ran.ran_in.as_secs_f64() * 1e3),
            ..Row::new(what)
        }
    }

    fn print(&self, program: &Program, rows: &[Row]) -> Result<()> {
        if self.json {
            return output::json(&rows);
        }
        let error_headings = program.outputs.iter().map(|o| format!("error {}", o.name)).collect::<Vec<_>>();
        let mut headings = vec!["", "result", "registers", "spills", "CUBIN"];
        headings.extend(error_headings.iter().map(String::as_str));
        headings.extend(["build", "run"]);
        let mut table = Table::new(&headings);
        for row in rows {
            let ms = |ms: Option<f64>| ms.map(|ms| format!("{ms:.0} ms")).unwrap_or_default();
            let mut cells = vec![
                row.what.clone(),
                row.result.clone(),
                row.registers.clone().unwrap_or_default(),
                row.spill_bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
                row.cubin_bytes.map(|bytes| format!("{} KiB", bytes.div_ceil(1024))).unwrap_or_default(),
            ];
            let error =
                |i: usize| row.errors.as_ref().map(|errors| format!("{:.2e}", errors[i])).unwrap_or_default();
            cells.extend((0..program.outputs.len()).map(error));
            cells.extend([ms(row.prepare_ms), ms(row.run_ms)]);
            table.row(cells);
        }
        let mut reasons: Vec<&str> = rows.iter().filter_map(|row| row.reason.as_deref()).collect();
        reasons.dedup();
        let reasons: String = reasons.iter().map(|reason| format!("\n{reason}\n")).collect();
        output::print(&format!("{table}\n{NOTE}\n{reasons}"))
    }
}

/// Writes `text` to a file of the folder, which is made if it is not there. Answers where it is.
fn write(folder: &Path, name: &str, text: &str) -> Result<String> {
    let file = folder.join(name);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&file, text))
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file.display().to_string())
}

/// P, the rows that the second GEMM of the experts left, padding and all.
fn permuted_rows(program: &Program, workload: &Workload) -> usize {
    let rows = program.params.iter().zip(workload.rank(0)).filter_map(|(param, argument)| match argument {
        Argument::Tensor(buffer) if param.role.tensor().has(Dim::Rows) => Some(buffer.len()),
        _ => None,
    });
    rows.sum::<usize>() / program.dims.hidden as usize
}

impl Row {
    fn new(what: String) -> Row {
        Row {
            what,
            ran: true,
            good: true,
            result: String::new(),
            reason: None,
            registers: None,
            spill_bytes: None,
            cubin_bytes: None,
            errors: None,
            prepare_ms: None,
            run_ms: None,
        }
    }

    fn not_run(what: String, why: &str) -> Row {
        Row {
            ran: false,
            good: false,
            result: "NOT RUN".to_owned(),
            reason: Some(why.to_owned()),
            ..Row::new(what)
        }
    }
}

fn compiled(arch: &str, result: &Result<Compiled>) -> Row {
    let what = format!("compile for {arch}");
    match result {
        Err(error) => Row::not_run(what, &output::chain(error)),
        Ok(compiled) => Row {
            result: "compiled".to_owned(),
            registers: Some(compiled.registers()),
            spill_bytes: Some(compiled.spill_bytes()),
            cubin_bytes: Some(compiled.cubin_bytes),
            prepare_ms: Some(compiled.time.as_secs_f64() * 1e3),
            ..Row::new(what)
        },
    }
}
