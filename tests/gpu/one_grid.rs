//! Small cases with all ranks in one grid: what compute-sanitizer can run.

use super::patterns::{Crossing, InPlace, ReduceOnly, Seam};
use super::support::{Fixture, gpu};
use seamline::prelude::*;
use seamline::{ErrorKind, Schedule};
use seamline_codegen::Presence;
use seamline_codegen::workload::{Kind, Workload};

#[test]
fn one_grid_stores_the_same_bits() {
    let Some(gpu) = gpu() else { return };
    for graph in [Seam::GRAPH, ReduceOnly::GRAPH, InPlace::GRAPH, Crossing::GRAPH] {
        let owner = Some(Schedule::Owner);
        for (ranks, hidden, schedule) in [
            (1, 512, None),
            (2, 1000, None),
            (4, 2048, None),
            (2, 1000, owner),
            (4, 2048, owner),
            (4, 64, owner),
        ] {
            let options = Prepare::new(6).exchange_tokens(4).one_grid();
            let options = schedule.map_or(options.clone(), |schedule| options.schedule(schedule));
            let fixture = Fixture::new(&gpu, graph, ranks, hidden, 4, &options);
            let program = fixture.program(Presence::ALL);
            for (tokens, kind) in
                [(1, Kind::Ordinary), (6, Kind::OutOfRange), (3, Kind::NoRows), (6, Kind::InfAndNan)]
            {
                let workload = Workload::new(&program, tokens, 9, kind);
                let what = format!("{}, N={ranks} {schedule:?} T={tokens} {kind:?}", program.name);
                fixture.run(&what, &program, &workload);
            }
        }
    }
}

#[test]
fn one_grid_is_not_launched_rank_by_rank() {
    let Some(gpu) = gpu() else { return };
    let fixture = Fixture::new(&gpu, Seam::GRAPH, 2, 512, 4, &Prepare::new(4).one_grid());
    let program = fixture.program(Presence::ALL);
    let memory = fixture.memory(&program, &Workload::new(&program, 4, 9, Kind::Ordinary));
    let args = memory[0].args(&program);
    let error = fixture.kernels[0].launch(&fixture.streams[0], (4, args)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::OneGrid), "{error}");
}
