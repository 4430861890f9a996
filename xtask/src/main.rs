//! Development tasks: `cargo xtask test`, `demo`, `gpu-bundle` and `nvrtc`.

mod bundle;
mod cargo;
mod demo;
mod nvrtc;
mod report;
#[cfg(test)]
mod rooms;
mod suites;
mod test;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Development tasks of seamline")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Checks everything: format, lints, tests, docs. Provides NVRTC where there is none.
    Test,
    /// Runs the Kimi-K2.5 seam end to end: on the GPU where there is one, else on the CPU.
    Demo {
        /// Arguments for `seamline demo`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Builds what a machine with a GPU and without cargo needs to run the GPU tests, into .gpu-bundle.
    GpuBundle,
    /// Provides NVRTC and prints the folder it is in.
    Nvrtc,
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Test => test::run(),
        Task::Demo { arguments } => demo::run(&arguments),
        Task::GpuBundle => bundle::run().map(|()| ExitCode::SUCCESS),
        Task::Nvrtc => nvrtc::provide().map(|found| {
            println!("{}", found.folder.display());
            ExitCode::SUCCESS
        }),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
