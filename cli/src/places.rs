//! Where generated kernels can run on this machine.

use crate::output;
use anyhow::{Result, anyhow};
use seamline::sim::Simulated;
use seamline::{Group, Rank, cuda};

/// A group of ranks, and what runs them.
pub struct Place {
    pub name: &'static str,
    pub ranks: Vec<Rank>,
}

/// The GPU where there is one, else the simulator.
pub fn best(ranks: u32) -> Result<Place> {
    gpu(ranks).or_else(|no_gpu| {
        simulator(ranks)
            .map_err(|no_simulator| anyhow!("{}; {}", output::chain(&no_gpu), output::chain(&no_simulator)))
    })
}

/// All ranks on the first GPU.
pub fn gpu(ranks: u32) -> Result<Place> {
    Ok(Place { name: "on the GPU", ranks: Group::loopback(&cuda::context(0)?, ranks)? })
}

/// All ranks on the CPU.
pub fn simulator(ranks: u32) -> Result<Place> {
    Ok(Place { name: "in the simulator", ranks: Group::simulated(ranks)? })
}
