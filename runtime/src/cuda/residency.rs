//! Whether all that must run at once can.
//!
//! A kernel that exchanges polls for its peers. On one device their blocks need room beside it; a block that
//! waits for room while those that hold it poll for its rows waits for ever.

use super::DriverContext;
use super::launch::{Config, Prepared};
use super::module::Loaded;
use crate::error::{Error, ErrorKind};
use crate::plan::placement::Placement;
use crate::plan::variant::Variant;
use cudarc::driver::{CudaFunction, sys};
use seamline_codegen::schedule::{LaunchShape, launches_at_once};

/// Refuses what would not fit.
pub(super) fn check(placement: &Placement, variant: &Variant, loaded: &Loaded) -> Result<(), Error> {
    for step in variant.steps().iter().filter(|step| step.geometry.schedule.def().hops > 0) {
        let shape = step.shape(step.up_to);
        let fit = active_clusters(&loaded.functions[step.entry], &Config::of(&shape), placement.device.sms)?;
        decide(placement, step.up_to, &shape, fit)?;
    }
    Ok(())
}

/// Whether all launches that may be under way at once have room, where `fit` clusters like those of `shape` do.
fn decide(placement: &Placement, tokens: u64, shape: &LaunchShape, fit: u64) -> Result<(), ErrorKind> {
    let ctas = shape.geometry.ctas;
    let launches = launches_at_once(placement.ranks_per_device, placement.forks, placement.early_trigger);
    let needed = u64::from(shape.clusters) * u64::from(launches);
    // Beside kernels of another kind a block finds room only where an SM is idle: see the planner.
    let available = if placement.forks == 0 { fit } else { fit.min(u64::from(placement.device.sms / ctas)) };
    match needed <= available {
        true => Ok(()),
        false => Err(ErrorKind::Residency {
            ranks: placement.ranks_per_device,
            forks: placement.forks,
            tokens,
            ctas,
            needed,
            available,
        }),
    }
}

/// Clusters of `config` that a context of `sms` multiprocessors holds at once.
fn active_clusters(function: &CudaFunction, config: &Config, sms: u32) -> Result<u64, Error> {
    let blocks = function.occupancy_max_active_blocks_per_multiprocessor(config.threads, 0, None);
    let blocks = blocks.doing(|| "asking how many blocks fit".into())?;
    // The driver counts clusters for launches that have the attribute: for others it answers 0.
    if config.cluster == 1 {
        return Ok(of_partition(u64::MAX, blocks, sms, 1));
    }
    let mut clusters = 0;
    let mut prepared = Prepared::new(config, std::ptr::null_mut());
    let terms = prepared.config();
    // SAFETY: the function's context is current since it was loaded; `terms` are complete.
    unsafe { sys::cuOccupancyMaxActiveClusters(&mut clusters, function.cu_function(), &terms) }
        .result()
        .doing(|| "asking how many clusters fit".into())?;
    Ok(of_partition(clusters.max(0) as u64, blocks, sms, config.cluster))
}

/// Of the `clusters` that the driver counts, maybe on the whole device, those that a partition of `sms` multiprocessors
/// has room for.
fn of_partition(clusters: u64, blocks_per_sm: u32, sms: u32, cluster: u32) -> u64 {
    clusters.min(u64::from(blocks_per_sm) * u64::from(sms) / u64::from(cluster))
}

#[cfg(test)]
mod tests {
    use super::*;
    use seamline_codegen::schedule::{DeviceModel, Geometry, Schedule};

    const PLACEMENT: Placement = Placement {
        device: DeviceModel::H200,
        ranks_per_device: 8,
        forks: 0,
        early_trigger: false,
        programmatic_launch: true,
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
        assert_eq!(decide(&PLACEMENT, 4, &shape(4, 7), 32), Ok(()));
        let error = decide(&PLACEMENT, 4, &shape(4, 7), 31).unwrap_err();
        let expected =
            ErrorKind::Residency { ranks: 8, forks: 0, tokens: 4, ctas: 7, needed: 32, available: 31 };
        assert_eq!(error, expected);
        let text = error.to_string();
        assert!(text.contains("8 ranks on one GPU need 32 clusters of 7 CTAs"), "{text}");
        assert!(text.contains("31 fit: use fewer ranks or forks, or a smaller `exchange_tokens`"), "{text}");
    }

    #[test]
    fn a_partition_holds_what_its_multiprocessors_do() {
        assert_eq!(of_partition(u64::MAX, 4, 132, 1), 528);
        assert_eq!(of_partition(64, 4, 132, 7), 64, "the driver knows the GPCs");
        assert_eq!(of_partition(64, 4, 16, 7), 9, "and may not know the partition");
        assert_eq!(of_partition(64, 0, 132, 7), 0);
    }

    #[test]
    fn a_successor_that_starts_early_counts() {
        let early = Placement { early_trigger: true, ..PLACEMENT };
        assert_eq!(decide(&early, 4, &shape(4, 7), 64), Ok(()));
        let error = decide(&early, 4, &shape(4, 7), 63).unwrap_err();
        assert!(matches!(error, ErrorKind::Residency { needed: 64, available: 63, .. }), "{error}");
    }

    #[test]
    fn forks_count_and_share_the_device_by_multiprocessors() {
        let forked = Placement { forks: 1, ..PLACEMENT };
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
