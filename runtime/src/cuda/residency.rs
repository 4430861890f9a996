//! Whether all that must run at once can.
//!
//! A kernel that exchanges polls for its peers. On one device their blocks need room beside it; a block that
//! waits for room while those that hold it poll for its rows waits for ever.

use super::Doing;
use super::launch::{Config, Prepared};
use super::module::Loaded;
use crate::error::{Error, ErrorKind};
use crate::plan::Plan;
use crate::variant::{Site, Variant};
use cudarc::driver::{CudaFunction, sys};
use seamline_codegen::schedule::{LaunchShape, launches_at_once};

/// Refuses what would not fit.
pub(super) fn check(plan: &Plan, variant: &Variant, loaded: &Loaded) -> Result<(), Error> {
    for step in variant.steps().iter().filter(|step| step.geometry.schedule.def().hops > 0) {
        let shape = step.shape(step.up_to);
        let fit = active_clusters(&loaded.functions[step.entry], &Config::of(&shape), plan.site.device.sms)?;
        decide(&plan.site, step.up_to, &shape, fit)?;
    }
    Ok(())
}

/// Whether all launches that may be under way at once have room, where `fit` clusters like those of `shape` do.
fn decide(site: &Site, tokens: u64, shape: &LaunchShape, fit: u64) -> Result<(), ErrorKind> {
    let ctas = shape.geometry.ctas;
    let launches = launches_at_once(site.ranks_per_device, site.forks, site.early_trigger);
    let needed = u64::from(shape.clusters) * u64::from(launches);
    // Beside kernels of another kind a block finds room only where an SM is idle: see the planner.
    let available = if site.forks == 0 { fit } else { fit.min(u64::from(site.device.sms / ctas)) };
    match needed <= available {
        true => Ok(()),
        false => Err(ErrorKind::Residency {
            ranks: site.ranks_per_device,
            forks: site.forks,
            tokens,
            ctas,
            needed,
            available,
        }),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use seamline_codegen::schedule::{DeviceModel, Geometry, Schedule};

    const SITE: Site = Site {
        device: DeviceModel::H200,
        ranks_per_device: 8,
        forks: 0,
        early_trigger: false,
        one_grid: false,
        schedules: Vec::new(),
    };

    fn shape(clusters: u32, ctas: u32) -> LaunchShape {
        let geometry = Geometry {
            schedule: Schedule::OneShot,
            ctas,
            threads: 128,
            vectors: 1,
            batch: 1,
            blocks_per_sm: 4,
            streaming: false,
            waves: false,
        };
        LaunchShape { geometry, clusters }
    }

    #[test]
    fn every_rank_counts() {
        assert_eq!(decide(&SITE, 4, &shape(4, 7), 32), Ok(()));
        let error = decide(&SITE, 4, &shape(4, 7), 31).unwrap_err();
        let expected =
            ErrorKind::Residency { ranks: 8, forks: 0, tokens: 4, ctas: 7, needed: 32, available: 31 };
        assert_eq!(error, expected);
        let text = error.to_string();
        assert!(text.contains("8 ranks on one GPU need 32 clusters of 7 CTAs"), "{text}");
        assert!(text.contains("31 fit: use fewer ranks or forks, or a smaller `exchange_tokens`"), "{text}");
    }

    #[test]
    fn a_successor_that_starts_early_counts() {
        let early = Site { early_trigger: true, ..SITE };
        assert_eq!(decide(&early, 4, &shape(4, 7), 64), Ok(()));
        let error = decide(&early, 4, &shape(4, 7), 63).unwrap_err();
        assert!(matches!(error, ErrorKind::Residency { needed: 64, available: 63, .. }), "{error}");
    }

    #[test]
    fn forks_count_and_share_the_device_by_multiprocessors() {
        let forked = Site { forks: 1, ..SITE };
        // However many fit of one kind alone.
        assert_eq!(decide(&forked, 8, &shape(8, 1), 1000), Ok(()));
        let error = decide(&forked, 9, &shape(9, 1), 1000).unwrap_err();
        assert!(
            matches!(error, ErrorKind::Residency { forks: 1, needed: 144, available: 132, .. }),
            "{error}"
        );
        let error = decide(&forked, 8, &shape(8, 1), 127).unwrap_err();
        assert!(matches!(error, ErrorKind::Residency { needed: 128, available: 127, .. }), "{error}");
    }
}
