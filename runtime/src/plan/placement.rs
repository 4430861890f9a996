//! Where kernels run, as far as their shapes depend on it.

use seamline_codegen::Program;
use seamline_codegen::schedule::{DeviceModel, Planner, Schedule};

/// What shapes depend on beside the program.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    pub(crate) device: DeviceModel,
    pub(crate) ranks_per_device: u32,
    /// Forks whose kernels poll beside this one.
    pub(crate) forks: u32,
    pub(crate) early_trigger: bool,
    /// With programmatic dependent launch.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "hosts know no launch attributes"))]
    pub(crate) programmatic_launch: bool,
    /// All ranks of a device in one grid.
    pub(crate) one_grid: bool,
    /// Schedules chosen by hand, from so many tokens on.
    pub(crate) schedules: Vec<(u64, Schedule)>,
}

impl Placement {
    pub(crate) fn planner<'a>(&self, program: &'a Program) -> Planner<'a> {
        Planner::new(program, self.device, self.ranks_per_device, self.early_trigger)
            .with_forks(self.forks)
            .with_schedules(self.schedules.iter().copied())
    }
}
