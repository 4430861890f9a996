//! The GPU stores the bits of the reference.

use super::patterns::{Crossing, InPlace, ReduceOnly, Seam};
use super::support::{Fixture, UNWRITTEN, gpu, without};
use seamline::Schedule;
use seamline::prelude::*;
use seamline_codegen::Presence;
use seamline_codegen::workload::{Kind, Workload};

const TOKENS: [usize; 12] = [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33];

#[test]
fn every_count_of_tokens_ranks_and_experts() {
    let Some(gpu) = gpu() else { return };
    let mut cases = 0;
    for hidden in [7168, 2880] {
        for ranks in [1, 2, 4, 8] {
            for top_k in [1, 2, 4, 6, 8, 10, 16, 22] {
                for graph in [Seam::GRAPH, ReduceOnly::GRAPH] {
                    let fixture = Fixture::new(&gpu, graph, ranks, hidden, top_k, &Prepare::new(33));
                    cases += counts_of_tokens(&fixture);
                }
            }
        }
    }
    println!("{cases} cases are bit-equal to the reference");
    assert_eq!(cases, 2 * 4 * 8 * 2 * 4 * TOKENS.len());
}

/// With and without each optional input, every count of tokens; answers how many cases those are.
fn counts_of_tokens(fixture: &Fixture) -> usize {
    let full = fixture.program(Presence::ALL);
    let workload = Workload::new(&full, 33, full.dims.hidden.into(), Kind::Ordinary);
    let mut memory = fixture.memory(&full, &workload);
    let mut cases = 0;
    for present in [Presence::ALL, without(&[2]), without(&[3]), without(&[2, 3])] {
        let program = fixture.program(present);
        let expected = fixture.expected(&program, &workload);
        for tokens in TOKENS {
            memory.iter_mut().zip(&fixture.streams).for_each(|(m, stream)| m.clear(stream));
            let what = format!("{}, {:?}, T={tokens}", program.name, program.dims);
            fixture.launch(&program, &memory, tokens).unwrap_or_else(|e| panic!("{what}: {e}"));
            fixture.compare(&what, &program, &expected, tokens, &memory);
            cases += 1;
        }
    }
    cases
}

/// Rows of 28 and 12 blocks: more than ranks, and no multiple of them.
#[test]
fn every_count_of_tokens_and_ranks_by_owner() {
    let Some(gpu) = gpu() else { return };
    let mut cases = 0;
    for hidden in [7168, 2880] {
        for ranks in 2..=8 {
            for graph in [Seam::GRAPH, ReduceOnly::GRAPH] {
                let options = Prepare::new(33).schedule(Schedule::Owner);
                cases += counts_of_tokens(&Fixture::new(&gpu, graph, ranks, hidden, 8, &options));
            }
        }
    }
    println!("{cases} cases by owner are bit-equal to the reference");
    assert_eq!(cases, 2 * 7 * 2 * 4 * TOKENS.len());
}

/// Each number of ranks with what runs it: one has one schedule.
fn ranks_and_schedules(ranks: &[u32]) -> Vec<(u32, Option<Schedule>)> {
    let owner = ranks.iter().filter(|ranks| **ranks > 1).map(|ranks| (*ranks, Some(Schedule::Owner)));
    ranks.iter().map(|ranks| (*ranks, None)).chain(owner).collect()
}

/// Options for so many tokens by a schedule, or by the one that is taken.
fn options(tokens: usize, schedule: Option<Schedule>) -> Prepare {
    let options = Prepare::new(tokens);
    schedule.map_or(options.clone(), |schedule| options.schedule(schedule))
}

#[test]
fn hostile_inputs() {
    let Some(gpu) = gpu() else { return };
    for (ranks, schedule) in ranks_and_schedules(&[1, 3, 8]) {
        for graph in [Seam::GRAPH, ReduceOnly::GRAPH, InPlace::GRAPH, Crossing::GRAPH] {
            let fixture = Fixture::new(&gpu, graph, ranks, 1024, 6, &options(9, schedule));
            let program = fixture.program(Presence::ALL);
            let kinds = Kind::HOSTILE.into_iter().chain([Kind::KIMI_K2, Kind::KIMI_K2_EXPERT_PARALLEL]);
            for (seed, kind) in kinds.enumerate() {
                let workload = Workload::new(&program, 9, seed as u64, kind);
                let what = format!("{}, N={ranks}, {schedule:?}, {kind:?}", program.name);
                fixture.run(&what, &program, &workload);
            }
        }
    }
}

#[test]
fn every_dtype_and_ragged_sizes() {
    let Some(gpu) = gpu() else { return };
    for dtype in DType::FLOATS {
        for hidden in [1, 7, 100, 1000, 2048, 2688, 2884, 4096, 6144, 8192] {
            for (ranks, schedule) in ranks_and_schedules(&[1, 2, 3]) {
                for graph in [Seam::GRAPH, InPlace::GRAPH, Crossing::GRAPH] {
                    let options = options(5, schedule);
                    let fixture = Fixture::with_dtype(&gpu, graph, ranks, (hidden, 5, dtype), &options);
                    let program = fixture.program(Presence::ALL);
                    let workload = Workload::new(&program, 5, hidden.into(), Kind::InfAndNan);
                    fixture.run(
                        &format!("{}, {dtype} H={hidden} N={ranks} {schedule:?}", program.name),
                        &program,
                        &workload,
                    );
                }
            }
        }
    }
}

#[test]
fn many_tokens() {
    let Some(gpu) = gpu() else { return };
    for (ranks, tokens) in [(1, 64), (1, 65), (1, 1024), (2, 129), (4, 300), (8, 257)] {
        for (ranks, schedule) in ranks_and_schedules(&[ranks]) {
            let fixture = Fixture::new(&gpu, Seam::GRAPH, ranks, 2048, 8, &options(1024, schedule));
            let program = fixture.program(Presence::ALL);
            let workload = Workload::new(&program, tokens, 5, Kind::Ordinary);
            fixture.run(&format!("N={ranks} T={tokens} {schedule:?}"), &program, &workload);
        }
    }
}

#[test]
fn a_row_is_the_same_whatever_it_is_launched_with() {
    let Some(gpu) = gpu() else { return };
    let fixture = Fixture::new(&gpu, Seam::GRAPH, 4, 7168, 8, &Prepare::new(64));
    let program = fixture.program(Presence::ALL);
    let workload = Workload::new(&program, 64, 1, Kind::Ordinary);
    let stored = |tokens: usize| {
        let memory = fixture.memory(&program, &workload);
        fixture.launch(&program, &memory, tokens).unwrap();
        fixture.wait();
        memory.iter().map(|m| m.stored(&fixture.streams[0], &program)).collect::<Vec<_>>()
    };
    let all = stored(64);
    for tokens in [1, 5, 16, 33] {
        for (few, all) in stored(tokens).iter().flatten().zip(all.iter().flatten()) {
            let bytes = tokens * 7168 * 2;
            assert!(few.bytes()[..bytes] == all.bytes()[..bytes], "T={tokens}");
            assert!(
                few.bytes()[bytes..].iter().all(|b| *b == UNWRITTEN),
                "rows past T={tokens} were written"
            );
        }
    }
    for rank in &all[1..] {
        assert!(rank == &all[0], "ranks differ");
    }
}
