//! The reference interpreter as an executor.

use crate::error::Error;
use crate::host::executor::{Executor, HostKernel, HostLaunch};
use crate::plan::variant::Variant;
use seamline_codegen::reference::{RankInputs, run_each};
use seamline_codegen::{OutputId, ParamId, Program};

/// Runs kernels by the contract's words, in Rust: slowly, and with the very bits that every other executor
/// must give.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Executor for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn exchanges_through_memory(&self) -> bool {
        false
    }

    fn compile(&self, variants: &[Variant]) -> Result<Box<dyn HostKernel>, Error> {
        Ok(Box::new(Programs(variants.iter().map(|v| v.program().clone()).collect())))
    }
}

/// Per variant.
#[derive(Debug)]
struct Programs(Vec<Program>);

impl HostKernel for Programs {
    fn run(&self, launches: &[HostLaunch<'_>]) -> Result<(), Error> {
        // Ranks that exchange nothing are independent.
        let together = self.0[0].dims.ranks as usize;
        launches.chunks(together).try_for_each(|ranks| self.exchange(ranks))
    }
}

impl Programs {
    /// One launch of each of the ranks that exchange.
    fn exchange(&self, ranks: &[HostLaunch<'_>]) -> Result<(), Error> {
        let programs: Vec<_> = ranks.iter().map(|launch| &self.0[launch.variant_index()]).collect();
        let inputs: Vec<_> = ranks
            .iter()
            .zip(&programs)
            .map(|(launch, program)| {
                RankInputs((0..program.params.len() as u32).map(|p| launch.input(ParamId(p))).collect())
            })
            .collect();
        let results = run_each(&programs, &inputs, ranks[0].tokens() as usize)
            .map_err(|error| Error::executor("reference", error))?;
        drop(inputs);
        for (launch, result) in ranks.iter().zip(results) {
            for (i, output) in result.outputs.iter().enumerate() {
                // SAFETY: the inputs were dropped above, and this is the only thread.
                unsafe { launch.store(OutputId(i as u32), output.bytes()) };
            }
            launch.count_out_of_range(result.stray_rows);
        }
        Ok(())
    }
}
