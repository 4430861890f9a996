//! The `seamline` command.

mod arguments;
mod bench;
mod check;
mod compile;
mod demo;
mod doctor;
mod execute;
mod list;
mod lists;
mod located;
mod named;
mod output;
mod places;
mod show;
mod table;
mod target;
mod warnings;

use clap::{CommandFactory, Parser, Subcommand};
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;

/// Fused CUDA kernels for the seams between transformer layers.
#[derive(Parser)]
#[command(name = "seamline", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Times the seam on a GPU, in CUDA graphs, beside other implementations of it
    Bench(bench::Bench),
    /// Runs patterns on every executor, on ordinary and hostile inputs, and compares all bits with the reference
    Check(check::Check),
    /// Runs the seam of Kimi-K2.5 end to end on this machine and compares it, bit for bit, with the reference
    Demo(demo::Demo),
    /// Looks at this machine: driver, GPUs, NVRTC, simulator; says how to get what is missing
    Doctor(doctor::Doctor),
    /// Lists the ready-made patterns, or those of a source file
    List(list::List),
    /// Shows what a pattern becomes: its phases, its launches, the generated CUDA, registers and spills
    Show(show::Show),
}

/// How a command ended, other than by an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// All that was looked at is as it should be.
    Good,
    /// Something is not; the command has said what.
    Bad,
}

/// The command line makes no sense together with what it names: exit status 2, as for clap's own errors.
#[derive(Debug)]
struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

fn main() -> ExitCode {
    warnings::show();
    let arguments = lists::joined(&Cli::command(), std::env::args_os().collect());
    // Before clap has understood anything, as its errors must know.
    let json = arguments.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    let result = match Cli::try_parse_from(arguments) {
        Ok(cli) => run(cli.command),
        Err(error) => return unparsed(&error, json),
    };
    match result {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::from(1),
        Err(error) => failed(&output::chain(&error), if error.is::<Usage>() { 2 } else { 1 }, json),
    }
}

fn run(command: Command) -> anyhow::Result<Verdict> {
    match command {
        Command::Bench(bench) => bench.run(),
        Command::Check(check) => check.run(),
        Command::Demo(demo) => demo.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::List(list) => list.run(),
        Command::Show(show) => show.run(),
    }
}

/// Help, a version, or a command line that clap does not understand, which it prints better.
fn unparsed(error: &clap::Error, json: bool) -> ExitCode {
    let status = error.exit_code();
    if json && status != 0 {
        let text = error.to_string();
        return failed(text.strip_prefix("error: ").unwrap_or(&text).trim_end(), status, json);
    }
    // Standard error may be full or closed; the exit status still says it.
    let _ = error.print();
    ExitCode::from(u8::try_from(status).unwrap_or(2))
}

/// What `--json` prints of an error.
#[derive(Serialize)]
struct Failure<'a> {
    error: &'a str,
    status: i32,
}

fn failed(error: &str, status: i32, json: bool) -> ExitCode {
    // Standard output and error may be full or closed; the exit status still says it.
    if json {
        let _ = output::json(&Failure { error, status });
    }
    let _ = writeln!(std::io::stderr(), "error: {}", output::visible(error));
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}
