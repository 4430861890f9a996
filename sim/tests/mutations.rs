//! Faults put into the templates on purpose: the simulator, or a comparison with the reference, catches every one.

#[path = "support/group.rs"]
mod group;

use group::{Group, K25, program};
use seamline_codegen::reference;
use seamline_codegen::schedule::{DeviceModel, Schedule};
use seamline_codegen::workload::{Kind, Workload};
use seamline_codegen::{Presence, Program};
use seamline_sim::{Options, Order};
use std::time::Duration;

/// Two norms, so that partial sums are written twice.
const TWO_NORMS: &str = "
#[fused_pattern(dtype = bf16)]
pub fn two_norms(x: Tokens, mut residual: Tokens, a: Channels, b: Channels, eps: Scalar) -> (Tokens, Tokens) {
    residual += rms_norm(all_reduce(x), a, eps);
    let y = rms_norm(rms_norm(residual, a, eps), b, eps);
    (residual, y)
}";

/// What is done to a template, and what must be said of it; `different bits` where only the result tells.
struct Mutation {
    name: &'static str,
    from: &'static str,
    to: &'static str,
    caught: &'static str,
    source: &'static str,
    ranks: u32,
    /// What runs it; the first that can, where nothing is said.
    schedule: Option<Schedule>,
    /// Multiprocessors: with one, a row is not dealt over a cluster.
    sms: u32,
    /// The most tokens of a launch: more than three take waves on one multiprocessor.
    tokens: usize,
    hidden: u32,
}

/// Neither a multiple of a warp's channels nor of a cluster's.
const HIDDEN: u32 = 1032;
/// In a cluster's last CTA a warp has no lane at all.
const SPARE_WARP: u32 = 3776;

const fn mutation(
    name: &'static str,
    from: &'static str,
    to: &'static str,
    caught: &'static str,
) -> Mutation {
    Mutation {
        name,
        from,
        to,
        caught,
        source: K25,
        ranks: 3,
        schedule: None,
        sms: 132,
        tokens: 3,
        hidden: HIDDEN,
    }
}

/// The same of `owner`.
const fn of_owner(
    name: &'static str,
    from: &'static str,
    to: &'static str,
    caught: &'static str,
) -> Mutation {
    Mutation { schedule: Some(Schedule::Owner), ..mutation(name, from, to, caught) }
}

/// Faults of `owner.cuh`. That slices must not be emptied a generation early takes a store that is late by a launch: see the model
/// of the protocol.
const OWNER: &[Mutation] = &[
    of_owner(
        "owner does not wait for the kernel before",
        "device::grid_wait();\n  if (Geo::EARLY_TRIGGER) device::grid_launch_dependents();\n  row.failed = device",
        "if (Geo::EARLY_TRIGGER) device::grid_launch_dependents();\n  row.failed = device",
        "before `grid_wait`",
    ),
    of_owner(
        "a slice goes to the rank after its owner",
        "% RANKS + RANKS - (u32)slices.exchange.rank) % RANKS;",
        "% RANKS + RANKS + 1 - (u32)slices.exchange.rank) % RANKS;",
        "no argument allows that",
    ),
    of_owner(
        "a slice goes into the place of the next rank",
        "+ slices.exchange.rank * Slices<Spec>::STRIDE;",
        "+ (slices.exchange.rank + 1) % RANKS * Slices<Spec>::STRIDE;",
        "another rank's row in the exchange memory",
    ),
    of_owner(
        "a sum is published in the place of the next block",
        "const u64 to = offset(slices.epoch, lane);",
        "const u64 to = offset(slices.epoch, lane + 32);",
        "another rank's row in the exchange memory",
    ),
    of_owner(
        "slices of every slot lie in one",
        "static constexpr u64 SLOT_BYTES = BLOCKS * STRIDE;",
        "static constexpr u64 SLOT_BYTES = 0;",
        "which is not empty",
    ),
    of_owner(
        "sums of every slot lie in one",
        "slices.index * (Slices<Spec>::BLOCKS * 32 * sizeof(Sum)) +",
        "",
        "which is not empty",
    ),
    of_owner(
        "sums lie where slices do",
        "const u64 all_slices = 3 * slices.exchange.generation_bytes;",
        "const u64 all_slices = 0;",
        "another rank's row in the exchange memory",
    ),
    of_owner(
        "an owner publishes before it has seen every slice",
        "wait = largest == EMPTY;\n      if (wait && tries % 64 == 0 && expired",
        "wait = false;\n      if (wait && tries % 64 == 0 && expired",
        "different bits",
    ),
    of_owner(
        "a sum is not waited for",
        "wait = largest == EMPTY;\n      if (wait && tries % 64 == 0 && slices",
        "wait = false;\n      if (wait && tries % 64 == 0 && slices",
        "which is not empty",
    ),
    of_owner(
        "a sum's last words are not looked at",
        "for (int w = 0; w < WORDS; w++) largest = device::max(largest, p.w[w]);",
        "for (int w = 0; w < WORDS - 1; w++) largest = device::max(largest, p.w[w]);",
        "different bits",
    ),
    of_owner(
        "sums are polled in a peer's memory",
        "const u64 at = slices.exchange.region[0] + offset(slices.epoch, lane);",
        "const u64 at = slices.exchange.region[1] + offset(slices.epoch, lane);",
        "polls 16 bytes",
    ),
    of_owner(
        "sums are emptied in a peer's memory",
        "const u64 sum = slices.exchange.region[0] + offset(slices.epoch + 2, lane);",
        "const u64 sum = slices.exchange.region[1] + offset(slices.epoch + 2, lane);",
        "empties 16 bytes",
    ),
    of_owner("slices are not emptied", "if (own) slices.arm(lane);", ";", "which is not empty"),
    of_owner(
        "sums are not emptied",
        "device::exchange_arm16((void*)(sum + w * 4), EMPTY, SELF || !own);",
        ";",
        "which is not empty",
    ),
    of_owner(
        "the slices of this launch are emptied",
        "const u64 to = exchange.region[0] + offset(epoch + 2, lane);",
        "const u64 to = exchange.region[0] + offset(epoch, lane);",
        "different bits",
    ),
    of_owner(
        "the sums of this launch are emptied",
        "offset(slices.epoch + 2, lane);",
        "offset(slices.epoch, lane);",
        "different bits",
    ),
    of_owner(
        "slices have two generations",
        "return (epoch % 3) * exchange.generation_bytes",
        "return (epoch % 2) * exchange.generation_bytes",
        "different bits",
    ),
    of_owner("the epoch does not advance", "next_epoch(epoch));", "epoch);", "which is not empty"),
    of_owner(
        "the epoch advances before its last reader",
        "Spec::before_exchange(args, row, cluster);",
        "device::control_store(args.exchange.epochs + row.token, next_epoch(epoch));\n    Spec::before_exchange(args, row, cluster);",
        "is not empty",
    ),
    of_owner(
        "an owner adds from its own slice on",
        "sum[j] = get(from[0], j);",
        "sum[j] = get(from[exchange.rank], j);",
        "different bits",
    ),
    Mutation {
        sms: 1,
        tokens: 8,
        ..of_owner(
            "an owner keeps its own sums to itself, in a launch in waves",
            "for (int i = SELF ? 0 : 1; i < RANKS; i++) {
      SEAMLINE_UNROLL
      for (int w = 0; w < WORDS; w += 4)
        device::exchange_push16((void*)(slices",
            "for (int i = 1; i < RANKS; i++) {
      SEAMLINE_UNROLL
      for (int w = 0; w < WORDS; w += 4)
        device::exchange_push16((void*)(slices",
            "different bits",
        )
    },
    Mutation {
        sms: 1,
        tokens: 8,
        ..of_owner(
            "an owner keeps its own slices to itself, in a launch in waves",
            "if (SELF || i != 0) {",
            "if (i != 0) {",
            "different bits",
        )
    },
    Mutation {
        sms: 1,
        tokens: 8,
        ..of_owner(
            "a launch in waves adds by the epoch of the token it sent last",
            "    if constexpr (WAVES) epoch = device::control_load(args.exchange.epochs + row.token);\n",
            "",
            "different bits",
        )
    },
];

const MUTATIONS: &[Mutation] = &[
    mutation(
        "one_shot does not wait for the kernel before",
        "device::grid_wait();\n  if (Geo::EARLY_TRIGGER) device::grid_launch_dependents();\n  row.failed = device",
        "if (Geo::EARLY_TRIGGER) device::grid_launch_dependents();\n  row.failed = device",
        "before `grid_wait`",
    ),
    Mutation {
        ranks: 1,
        ..mutation(
            "local does not wait",
            "device::grid_wait();\n  if (Geo::EARLY_TRIGGER) device::grid_launch_dependents();\n  row.failed = false;",
            "row.failed = false;",
            "`grid_wait`",
        )
    },
    mutation(
        "the epoch of another slot is read",
        "epoch = device::control_load(args.exchange.epochs + row.token);",
        "epoch = device::control_load(args.exchange.epochs + row.token + device::blocks());",
        "`epochs`",
    ),
    mutation(
        "the dependents begin before the wait",
        "device::grid_wait();\n  if (Geo::EARLY_TRIGGER) device::grid_launch_dependents();",
        "device::grid_launch_dependents();\n  device::grid_wait();",
        "calls `grid_launch_dependents` before `grid_wait`",
    ),
    mutation(
        "a spare lane pushes",
        "if (row.channels[v] > 0 && !row.failed) slot.push(",
        "if (!row.failed) slot.push(",
        "pushes to 16 bytes",
    ),
    mutation(
        "a row is pushed into the place of the next rank",
        "offset(epoch, lane) + exchange.rank * Rows::STRIDE;",
        "offset(epoch, lane) + (exchange.rank + 1) % RANKS * Rows::STRIDE;",
        "another rank's row in the exchange memory",
    ),
    mutation(
        "a peer's memory is polled",
        "const u64 at = exchange.region[0] + offset(epoch, lane);",
        "const u64 at = exchange.region[1] + offset(epoch, lane);",
        "polls 16 bytes",
    ),
    mutation(
        "a peer's memory is emptied",
        "const u64 to = exchange.region[0] + offset(epoch + 2, lane);",
        "const u64 to = exchange.region[1] + offset(epoch + 2, lane);",
        "empties 16 bytes",
    ),
    mutation("nothing is emptied", "slot.arm(row.lane[v]);", ";", "which is not empty"),
    mutation(
        "the generation of this launch is emptied",
        "offset(epoch + 2, lane);",
        "offset(epoch, lane);",
        "",
    ),
    mutation(
        "the generation of the next launch is emptied",
        "offset(epoch + 2, lane);",
        "offset(epoch + 1, lane);",
        "",
    ),
    mutation("two generations instead of three", "(epoch % 3) *", "(epoch % 2) *", ""),
    mutation(
        "a slot's last words are not looked at",
        "for (int w = 0; w < WORDS; w++) largest = device::max",
        "for (int w = 0; w < WORDS - 1; w++) largest = device::max",
        "different bits",
    ),
    mutation(
        "the last rank is not waited for",
        "wait = largest == EMPTY;\n      if (wait && tries % 64 == 0 && expired",
        "wait = largest == EMPTY && from[0].w[0] == EMPTY;\n      if (wait && tries % 64 == 0 && expired",
        "",
    ),
    mutation("nobody waits for the ranks", "wait = largest == EMPTY;", "wait = false;", ""),
    mutation("the epoch does not advance", "next_epoch(epoch));", "epoch);", ""),
    mutation(
        "the epoch advances before its last reader",
        "Spec::before_exchange(args, row, cluster);",
        "device::control_store(args.exchange.epochs + row.token, next_epoch(epoch));\n    Spec::before_exchange(args, row, cluster);",
        "is not empty",
    ),
    mutation(
        "ranks are added from the own one on",
        "sum[j] = get(from[0], j);",
        "sum[j] = get(from[exchange.rank], j);",
        "different bits",
    ),
    mutation(
        "the cluster is written to before it runs",
        "      if (!started) device::cluster_wait();\n      started = true;",
        "      if (started) return;\n      started = true;",
        "cluster barrier",
    ),
    mutation(
        "nobody waits for the cluster's partial sums",
        "device::mbarrier_wait(arrived + half, parity);",
        ";",
        "",
    ),
    Mutation {
        sms: 1,
        ..mutation(
            "no barrier between partial sums and their readers",
            "    else\n      barrier();\n    SEAMLINE_UNROLL\n    for (int s = 0; s < SUMS; s++) {\n      f32 chain[4]",
            "    SEAMLINE_UNROLL\n    for (int s = 0; s < SUMS; s++) {\n      f32 chain[4]",
            "reads a shared variable that",
        )
    },
    mutation(
        "an mbarrier is not made",
        "        device::mbarrier_init(arrived);\n",
        "",
        "uses an mbarrier that no thread has made",
    ),
    mutation(
        "mbarriers are made behind the arrival",
        "        device::mbarrier_init(arrived);\n        device::mbarrier_init(arrived + 1);\n      }\n      device::cluster_arrive_relaxed();\n",
        "      }\n      device::cluster_arrive_relaxed();\n      if (device::thread() == 0) device::mbarrier_init(arrived);\n",
        "none whose barrier it is behind",
    ),
    mutation(
        "nobody says how many partial sums there are",
        "if (device::thread() == 0) device::mbarrier_expect(",
        "if (false) device::mbarrier_expect(",
        "lacks the arrival",
    ),
    mutation(
        "every thread says how many partial sums there are",
        "if (device::thread() == 0) device::mbarrier_expect(",
        "device::mbarrier_expect(",
        "whose phase has had its one arrival",
    ),
    mutation(
        "partial sums of blocks that do not exist are waited for",
        "SUMS * Sums::BLOCKS * sizeof(f32)",
        "SUMS * Sums::STRIDE * sizeof(f32)",
        "bytes that it expects",
    ),
    mutation(
        "a partial sum is not waited for",
        "SUMS * Sums::BLOCKS * sizeof(f32)",
        "(SUMS * Sums::BLOCKS - 1) * sizeof(f32)",
        "",
    ),
    mutation(
        "a partial sum is not sent to every CTA",
        "(at.FULL || block < Sums::BLOCKS) && to < Geo::CTAS)",
        "(at.FULL || block < Sums::BLOCKS) && to + 1 < Geo::CTAS)",
        "bytes that it expects",
    ),
    Mutation {
        source: TWO_NORMS,
        ..mutation("an mbarrier's phases are not told apart", "sums / 2 % 2;", "0;", "")
    },
    Mutation { source: TWO_NORMS, ..mutation("halves have one mbarrier", "arrived + half", "arrived", "") },
    Mutation {
        source: TWO_NORMS,
        hidden: SPARE_WARP,
        ..mutation(
            "a warp that sends nothing reads partial sums",
            "      if (!at.FULL && at.lane[0] / 32 >= Sums::BLOCKS) {",
            "      if (false) {",
            "",
        )
    },
    Mutation {
        sms: 1,
        ..mutation(
            "one warp passes a barrier",
            "device::block_barrier();\n    }",
            "if (device::thread() >= 32) device::block_barrier();\n    }",
            "",
        )
    },
    Mutation {
        sms: 1,
        tokens: 8,
        ..mutation(
            "a launch in waves does not read what it needs after the exchange",
            "      Spec::template load_inputs<false, true>(args, row);\n",
            "",
            "different bits",
        )
    },
    Mutation {
        sms: 1,
        tokens: 8,
        ..mutation(
            "a launch in waves keeps its own rows to itself",
            "int i = SELF ? 0 : 1;",
            "int i = 1;",
            "",
        )
    },
    Mutation {
        sms: 1,
        tokens: 8,
        ..mutation(
            "a launch in waves receives by the epoch of the token it sent last",
            "    if constexpr (WAVES) {\n      epoch = device::control_load(args.exchange.epochs + row.token);\n",
            "    if constexpr (WAVES) {\n",
            "",
        )
    },
    Mutation {
        source: TWO_NORMS,
        ..mutation(
            "partial sums have one buffer",
            "const int half = sums % 2, parity = sums / 2 % 2;",
            "const int half = 0, parity = sums % 2;",
            "no barrier lies between",
        )
    },
    Mutation {
        source: TWO_NORMS,
        sms: 1,
        ..mutation(
            "partial sums of one CTA have one buffer",
            "const int half = sums % 2, parity = sums / 2 % 2;",
            "const int half = 0, parity = sums % 2;",
            "no barrier lies between",
        )
    },
    mutation(
        "a ragged row's end is stored in full",
        "FULL || left > LANE ? LANE : left < 0 ? 0 : left;",
        "LANE;",
        "no argument allows that",
    ),
    mutation(
        "a dropped expert is read",
        "from < 0 ? 0 : channels);",
        "channels);",
        "no argument allows that",
    ),
    mutation(
        "the weight of the next expert",
        "device::shuffle(device::to_bits(weight), k)",
        "device::shuffle(device::to_bits(weight), (k + 1) % COUNT)",
        "different bits",
    ),
    mutation(
        "the butterfly misses a step",
        "for (u32 mask = 16; mask > 0; mask >>= 1) x =",
        "for (u32 mask = 8; mask > 0; mask >>= 1) x =",
        "different bits",
    ),
];

/// Launches of changing size on `group`: what is wrong, if anything is.
fn run(group: &mut Group, most: usize, options: &Options) -> Option<String> {
    let launch = |(i, tokens)| Workload::new(&group.program, tokens, i as u64, Kind::NanBehindDropped);
    let workloads = [most, 1, most, 2, most, most].into_iter().enumerate().map(launch).collect::<Vec<_>>();
    let mut calls = workloads.iter().map(|w| group.call(w)).collect::<Vec<_>>();
    if let Err(error) = group.run(&mut calls, options) {
        return Some(error.to_string());
    }
    calls.iter().zip(&workloads).find_map(|(call, workload)| {
        let expected = reference::run(&group.program, &workload.inputs(), workload.tokens()).unwrap();
        Some(format!("different bits: {}", call.difference(&group.program, &expected)?))
    })
}

/// What the first of some orders finds wrong with a source.
fn find(
    sms: u32,
    most: usize,
    schedule: Option<Schedule>,
    program: &Program,
    change: impl Fn(String) -> String,
) -> Option<String> {
    let device = DeviceModel { sms, ..DeviceModel::H200 };
    let schedule = schedule.unwrap_or(Schedule::of(program));
    let orders = [Order::Forward, Order::Reverse].into_iter().chain((0..30).map(Order::Random));
    orders.into_iter().find_map(|order| {
        let group = Group::scheduled(device, schedule, program.clone(), most as u64, &change);
        let mut group = group.unwrap_or_else(|e| panic!("{e}"));
        let late = match order {
            Order::Reverse => Options::new(order).delay(1, Duration::from_millis(1)),
            _ => Options::new(order),
        };
        run(&mut group, most, &late)
    })
}

#[test]
fn every_mutation_of_the_templates_is_caught() {
    let mut missed = Vec::new();
    for mutation in MUTATIONS.iter().chain(OWNER) {
        let Mutation { name, from, to, caught, source, ranks, schedule, sms, tokens, hidden } = mutation;
        let program = program(source, *hidden, 4, *ranks, Presence::ALL);
        let change = |text: String| {
            assert!(text.contains(from), "`{name}` no longer applies: the templates have changed");
            text.replace(from, to)
        };
        match find(*sms, *tokens, *schedule, &program, change) {
            Some(found) if found.contains(caught) => {
                println!("{name}: {}", found.lines().next().unwrap_or_default())
            }
            found => missed.push(format!("{name}: {found:?}")),
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn the_templates_themselves_pass() {
    let owner = Some(Schedule::Owner);
    for (source, schedule, sms, tokens, ranks, hidden) in [
        (K25, None, 132, 3, 3, HIDDEN),
        (K25, None, 1, 3, 3, HIDDEN),
        (K25, None, 1, 8, 3, HIDDEN),
        (TWO_NORMS, None, 132, 3, 3, HIDDEN),
        (TWO_NORMS, None, 1, 3, 3, HIDDEN),
        (TWO_NORMS, None, 132, 3, 3, SPARE_WARP),
        (K25, None, 132, 3, 1, HIDDEN),
        (K25, owner, 132, 3, 3, HIDDEN),
        (K25, owner, 1, 3, 3, HIDDEN),
        (K25, owner, 1, 8, 3, HIDDEN),
        (TWO_NORMS, owner, 132, 3, 3, HIDDEN),
        (TWO_NORMS, owner, 132, 3, 3, SPARE_WARP),
    ] {
        let program = program(source, hidden, 4, ranks, Presence::ALL);
        assert_eq!(find(sms, tokens, schedule, &program, |text| text), None);
    }
}
