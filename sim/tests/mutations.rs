//! Faults put into the templates on purpose: the simulator, or a comparison with the reference, catches every one.

#[path = "support/group.rs"]
mod group;

use group::{Group, K25, program};
use seamline_codegen::reference;
use seamline_codegen::schedule::DeviceModel;
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
    /// Multiprocessors: with one, a row is not dealt over a cluster.
    sms: u32,
}

/// Neither a multiple of a warp's channels nor of a cluster's.
const HIDDEN: u32 = 1032;

const fn mutation(
    name: &'static str,
    from: &'static str,
    to: &'static str,
    caught: &'static str,
) -> Mutation {
    Mutation { name, from, to, caught, source: K25, ranks: 3, sms: 132 }
}

const MUTATIONS: &[Mutation] = &[
    mutation(
        "one_shot does not wait for the kernel before",
        "row.begin(args);\n    device::grid_wait();\n    if",
        "row.begin(args);\n    if",
        "before `grid_wait`",
    ),
    Mutation {
        ranks: 1,
        ..mutation(
            "local does not wait",
            "row.begin(args);\n  device::grid_wait();\n",
            "row.begin(args);\n",
            "`grid_wait`",
        )
    },
    mutation(
        "inputs are asked for before the wait",
        "const u32 epoch = device::control_load(args.exchange.epochs + token);",
        "const u32 epoch = device::control_load(args.exchange.epochs + token + device::blocks());",
        "`epochs`",
    ),
    mutation(
        "the dependents begin before the wait",
        "device::grid_wait();\n    if (Geo::EARLY_TRIGGER) device::grid_launch_dependents();",
        "device::grid_launch_dependents();\n    device::grid_wait();",
        "calls `grid_launch_dependents` before `grid_wait`",
    ),
    mutation(
        "a spare lane pushes",
        "slot(v, epoch).push(own[v], exists(v) && !row.at[v].failed);",
        "slot(v, epoch).push(own[v], !row.at[v].failed);",
        "pushes to 16 bytes",
    ),
    mutation(
        "a row is pushed into the place of the next rank",
        "const u64 to = offset(epoch, (u32)args.exchange.rank);",
        "const u64 to = offset(epoch, ((u32)args.exchange.rank + 1) % Spec::RANKS);",
        "another rank's row in the exchange memory",
    ),
    mutation(
        "a peer's memory is polled",
        "const u64 at = args.exchange.region[0] + offset(epoch, 0);",
        "const u64 at = args.exchange.region[1] + offset(epoch, 0);",
        "polls 16 bytes",
    ),
    mutation(
        "a peer's memory is emptied",
        "const u64 to = args.exchange.region[0] + offset(epoch + 2, 0);",
        "const u64 to = args.exchange.region[1] + offset(epoch + 2, 0);",
        "empties 16 bytes",
    ),
    mutation(
        "nothing is emptied",
        "slot(v, epoch).arm(exists(v) && !row.at[v].failed);",
        "slot(v, epoch).arm(false);",
        "which is not empty",
    ),
    mutation("the generation of this launch is emptied", "offset(epoch + 2, 0);", "offset(epoch, 0);", ""),
    mutation(
        "the generation of the next launch is emptied",
        "offset(epoch + 2, 0);",
        "offset(epoch + 1, 0);",
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
        "if (largest != EMPTY) break;",
        "if (largest != EMPTY || from[0].w[0] != EMPTY) break;",
        "",
    ),
    mutation("nobody waits for the ranks", "if (largest != EMPTY) break;", "break;", ""),
    mutation("the epoch does not advance", "next_epoch(epoch));", "epoch);", ""),
    mutation(
        "the epoch advances before its last reader",
        "send(epoch);\n      receive(epoch);",
        "device::control_store(args.exchange.epochs + token, next_epoch(epoch));\n      send(epoch);\n      receive(epoch);",
        "",
    ),
    mutation(
        "ranks are added from the own one on",
        "Lane sum = unpack(from[0]);",
        "Lane sum = unpack(from[args.exchange.rank]);",
        "different bits",
    ),
    mutation(
        "the cluster is written to before it runs",
        "      if (!started) device::cluster_wait();\n      started = true;",
        "      if (started) return;\n      started = true;",
        "cluster barrier",
    ),
    mutation(
        "no barrier between partial sums and their readers",
        "    barrier();\n    SEAMLINE_UNROLL\n    for (int s = 0; s < SUMS; s++) {\n      f32 chain[4]",
        "    SEAMLINE_UNROLL\n    for (int s = 0; s < SUMS; s++) {\n      f32 chain[4]",
        "no barrier lies between",
    ),
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
        source: TWO_NORMS,
        ..mutation("partial sums have one buffer", "turn ^= 1;", "", "no barrier lies between")
    },
    mutation(
        "a ragged row's end is stored in full",
        "left < 0 ? 0 : left < LANE ? left : LANE",
        "LANE",
        "no argument allows that",
    ),
    mutation("a dropped expert is read", "(u32)index[k] < row_count;", "true;", "no argument allows that"),
    mutation(
        "the weight of the next expert",
        "acc.x[j] = device::fma(x.x[j], weight[k], acc.x[j])",
        "acc.x[j] = device::fma(x.x[j], weight[(k + 1) % COUNT], acc.x[j])",
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
fn run(group: &mut Group, options: &Options) -> Option<String> {
    let launch = |(i, tokens)| Workload::new(&group.program, tokens, i as u64, Kind::NanBehindDropped);
    let workloads = [3, 1, 3, 2, 3, 3].into_iter().enumerate().map(launch).collect::<Vec<_>>();
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
fn find(sms: u32, program: &Program, change: impl Fn(String) -> String) -> Option<String> {
    let device = DeviceModel { sms, ..DeviceModel::H200 };
    let orders = [Order::Forward, Order::Reverse].into_iter().chain((0..30).map(Order::Random));
    orders.into_iter().find_map(|order| {
        let mut group = Group::on(device, program.clone(), 3, &change).unwrap_or_else(|e| panic!("{e}"));
        let late = match order {
            Order::Reverse => Options::new(order).delay(1, Duration::from_millis(1)),
            _ => Options::new(order),
        };
        run(&mut group, &late)
    })
}

#[test]
fn every_mutation_of_the_templates_is_caught() {
    let mut missed = Vec::new();
    for mutation in MUTATIONS {
        let Mutation { name, from, to, caught, source, ranks, sms } = mutation;
        let program = program(source, HIDDEN, 4, *ranks, Presence::ALL);
        let change = |text: String| {
            assert!(text.contains(from), "`{name}` no longer applies: the templates have changed");
            text.replace(from, to)
        };
        match find(*sms, &program, change) {
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
    for (source, sms, ranks) in [(K25, 132, 3), (K25, 1, 3), (TWO_NORMS, 132, 3), (K25, 132, 1)] {
        assert_eq!(find(sms, &program(source, HIDDEN, 4, ranks, Presence::ALL), |text| text), None);
    }
}
