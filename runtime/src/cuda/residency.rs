//! Whether all that must run at once can.
//!
//! A kernel that exchanges polls for its peers. On one device their blocks need room beside it; a block that
//! waits for room while those that hold it poll for its rows waits for ever.

use super::Doing;
use super::launch::{Config, Prepared};
use super::module::Loaded;
use crate::error::{Error, ErrorKind};
use crate::plan::Plan;
use crate::variant::Variant;
use cudarc::driver::{CudaFunction, sys};
use seamline_codegen::schedule::{Schedule, launches_at_once};

/// Refuses what would not fit.
pub(super) fn check(plan: &Plan, variant: &Variant, loaded: &Loaded) -> Result<(), Error> {
    if variant.schedule() == Schedule::Local {
        return Ok(());
    }
    let share = u64::from(launches_at_once(plan.site.ranks_per_device, plan.site.early_trigger));
    for step in variant.steps() {
        let shape = step.shape(step.up_to);
        let config = Config::of(&shape);
        let available = active_clusters(&loaded.functions[step.entry], &config, plan.site.device.sms)?;
        let needed = u64::from(shape.clusters) * share;
        if needed > available {
            return Err(ErrorKind::Residency {
                ranks: plan.site.ranks_per_device,
                tokens: step.up_to,
                ctas: config.cluster,
                needed,
                available,
            }
            .into());
        }
    }
    Ok(())
}

/// Clusters of `config` that the device, of `sms` multiprocessors, holds at once.
fn active_clusters(function: &CudaFunction, config: &Config, sms: u32) -> Result<u64, Error> {
    // The driver counts clusters for launches that have the attribute: for others it answers 0.
    if config.cluster == 1 {
        let blocks = function.occupancy_max_active_blocks_per_multiprocessor(config.threads, 0, None);
        return Ok(u64::from(blocks.doing(|| "asking how many blocks fit".into())?) * u64::from(sms));
    }
    let mut clusters = 0;
    let mut prepared = Prepared::new(config, std::ptr::null_mut());
    let config = prepared.config();
    // SAFETY: the function's context is current since it was loaded; `config` is complete.
    unsafe { sys::cuOccupancyMaxActiveClusters(&mut clusters, function.cu_function(), &config) }
        .result()
        .doing(|| "asking how many clusters fit".into())?;
    Ok(clusters.max(0) as u64)
}
