//! What CUDA gives a kernel, and what it gives a kernel that is wrong.

#[path = "support/kernel.rs"]
mod kernel;

use kernel::{Memory, build, build_with, launch, run};
use seamline_sim::{AccessRole, Launch, Options, Order, SimError};
use std::time::{Duration, Instant};

const ORDERS: [Order; 5] =
    [Order::Forward, Order::Reverse, Order::Random(1), Order::Random(2), Order::Random(3)];

/// Runs `body` on one output of `words` words in every order, and gives what it wrote in each.
fn outputs(body: &str, blocks: u32, threads: u32, words: usize) -> Vec<Vec<u32>> {
    let library = build(body).unwrap();
    let in_order = |order| {
        let mut out = Memory::new(words, 0);
        run(
            &[launch(&library, blocks, threads, vec![out.range("out", AccessRole::Output)])],
            &Options::new(order),
        )
        .unwrap_or_else(|e| panic!("{e}"));
        out.words().to_vec()
    };
    ORDERS.map(in_order).to_vec()
}

#[test]
fn every_thread_of_every_block_runs_once() {
    let body = "device::grid_wait();
        u32 i = device::block() * 64 + device::thread();
        device::store4(args.a + i, device::blocks() * 1000 + i, true);";
    for out in outputs(body, 5, 64, 320) {
        assert!(out.iter().enumerate().all(|(i, &w)| w == 5000 + i as u32));
    }
}

#[test]
fn a_butterfly_adds_up_a_warp() {
    let body = "device::grid_wait();
        float x = (float)(device::thread() % 32);
        for (u32 mask = 16; mask > 0; mask >>= 1) x += device::shuffle_xor(x, mask);
        device::store4(args.a + device::thread(), device::to_bits(x), true);";
    for out in outputs(body, 1, 96, 96) {
        assert!(out.iter().all(|&w| f32::from_bits(w) == 496.0));
    }
}

const NEIGHBOUR: &str = "device::grid_wait();
    SEAMLINE_SHARED(u32, box, 64);
    u32 i = device::thread();
    box[i] = i;
    BARRIER
    device::store4(args.a + i, box[63 - i], true);";

#[test]
fn a_barrier_orders_shared_memory() {
    for out in outputs(&NEIGHBOUR.replace("BARRIER", "device::block_barrier();"), 2, 64, 64) {
        assert!(out.iter().enumerate().all(|(i, &w)| w == 63 - i as u32));
    }
}

#[test]
fn a_missing_barrier_shows_in_every_order() {
    for out in outputs(&NEIGHBOUR.replace("BARRIER", ""), 1, 64, 64) {
        assert!(out.contains(&u32::MAX), "what was read too early is poison: {out:?}");
    }
}

#[test]
fn a_cluster_shares_memory_and_barriers() {
    let body = "SEAMLINE_SHARED(float, sums, 4);
        SEAMLINE_SHARED(u64, bar, 1);
        if (device::thread() == 0) device::mbarrier_init(bar);
        device::cluster_arrive_relaxed();
        device::grid_wait();
        device::cluster_wait();
        if (device::thread() == 0) device::mbarrier_expect(bar, 16);
        if (device::thread() < 4) device::store_async(sums + device::cluster_rank(), bar, device::thread(), 10.0f + (float)device::cluster_rank());
        device::mbarrier_wait(bar, 0);
        if (device::thread() == 0) device::store4(args.a + device::block(), device::to_bits(sums[0] + sums[1] + sums[2] + sums[3]), true);";
    let library = build(body).unwrap();
    for order in ORDERS {
        let mut out = Memory::new(8, 0);
        let launch =
            Launch { cluster: 4, ..launch(&library, 8, 32, vec![out.range("out", AccessRole::Output)]) };
        run(&[launch], &Options::new(order)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(out.words(), [46f32.to_bits(); 8], "{order}");
    }
}

/// Pushes a word to the other rank, polls its own memory for the other's, and keeps what came.
const SWAP: &str = "device::grid_wait();
    PUSH(args.b, 7, 8, 9, 10);
    u64 start = device::clock_ns();
    Words got;
    for (;;) {
        got = POLL(args.a);
        if (got.w[0] != ~0u && got.w[1] != ~0u && got.w[2] != ~0u && got.w[3] != ~0u) break;
        if (device::clock_ns() - start > 30000000000ull) { got = Words{{666, 0, 0, 10}}; break; }
    }
    device::exchange_arm16(args.a, ~0u, true);
    device::store4(args.c, got.w[0] + got.w[3], true);";

/// The launches of `SWAP` on two ranks.
fn swap(regions: &mut [Memory; 2], outputs: &mut [Memory; 2]) -> [Launch; 2] {
    let library = build(SWAP).unwrap();
    std::array::from_fn(|rank| {
        let peer = AccessRole::Outbox { rank: 1 - rank as u32, row: 16, stride: 16 };
        let memory = vec![
            regions[rank].range("own region", AccessRole::Inbox),
            regions[1 - rank].range("peer's region", peer),
            outputs[rank].range("out", AccessRole::Output),
        ];
        Launch { rank: rank as u32, ..launch(&library, 1, 1, memory) }
    })
}

#[test]
fn ranks_exchange_through_memory() {
    for order in ORDERS {
        let mut regions = [Memory::new(4, u32::MAX), Memory::new(4, u32::MAX)];
        let mut outputs = [Memory::new(4, 0), Memory::new(4, 0)];
        let launches = swap(&mut regions, &mut outputs);
        run(&launches, &Options::new(order)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!([outputs[0].words()[0], outputs[1].words()[0]], [17, 17], "{order}");
    }
}

#[test]
fn a_rank_may_come_late_but_not_never() {
    let mut regions = [Memory::new(4, u32::MAX), Memory::new(4, u32::MAX)];
    let mut outputs = [Memory::new(4, 0), Memory::new(4, 0)];
    let launches = swap(&mut regions, &mut outputs);
    let late = Options::default().delay(1, Duration::from_secs(20));
    run(&launches, &late).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!([outputs[0].words()[0], outputs[1].words()[0]], [17, 17]);

    let start = Instant::now();
    let report = run(&launches[..1], &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(outputs[0].words()[0], 676, "the poll has timed out");
    assert!(report.simulated_ns > 30_000_000_000 && start.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_poll_without_bound_is_a_deadlock_that_names_what_it_waits_for() {
    let body = "device::grid_wait();
        while (POLL(args.a + 4).w[0] == ~0u) {}";
    let mut region = Memory::new(8, u32::MAX);
    let launch = launch(&build(body).unwrap(), 2, 64, vec![region.range("region", AccessRole::Inbox)]);
    let error = run(&[launch], &Options::new(Order::Random(5))).unwrap_err();
    let SimError::Deadlock { waits, .. } = &error else { panic!("{error}") };
    assert_eq!(waits.iter().map(|w| w.threads).collect::<Vec<_>>(), [128]);
    let text = error.to_string();
    for part in ["test: deadlock", "127 more", "test.cu:4", "byte 16 of `region`", "replay: order random:5"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_control_word_is_waited_for() {
    let body = "device::grid_wait();
        if (device::block() == 0) { while (device::control_load(args.a) == 0) {} device::control_add(args.a, 1); }
        else device::control_release(args.a, 1);";
    let library = build(body).unwrap();
    for order in ORDERS {
        let mut word = Memory::new(4, 0);
        run(&[launch(&library, 2, 1, vec![word.range("word", AccessRole::Control)])], &Options::new(order))
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(word.words()[0], 2);
    }
}

#[test]
fn launches_of_a_rank_follow_each_other() {
    let body = "u32 before = device::load_const4(args.c, true);
        device::grid_wait();
        device::grid_launch_dependents();
        device::store4(args.b + device::thread(), device::load_const4(args.a + device::thread() % 32, true) + before, true);";
    let library = build(body).unwrap();
    for seed in 0..20 {
        let mut weights = Memory::new(4, 100);
        let mut chain = [(); 4].map(|()| Memory::new(64, 0));
        let launches = (0..3).map(|i| {
            let memory = vec![
                chain[i].range("in", AccessRole::Input),
                chain[i + 1].range("out", AccessRole::Output),
                weights.range("weights", AccessRole::Weights),
            ];
            Launch { dependent: true, ..launch(&library, 3, 64, memory) }
        });
        let launches = launches.collect::<Vec<_>>();
        run(&launches, &Options::new(Order::Random(seed))).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(chain.map(|m| m.words()[5]), [0, 100, 200, 300], "seed {seed}");
    }
}

#[test]
fn a_hundred_thousand_threads_live_at_once() {
    // Each waits for the next block, so all must have begun.
    let body = "device::grid_wait();
        u32 last = device::blocks() - 1;
        if (device::block() == last) { if (device::thread() == 0) PUSH(args.b + 4 * last, 1, 1, 1, 1); }
        else {
            u64 start = device::clock_ns();
            while (POLL(args.a + 4 * (device::block() + 1)).w[3] == ~0u) if (device::clock_ns() - start > 1000000000) return;
            if (device::thread() == 0) PUSH(args.b + 4 * device::block(), 1, 1, 1, 1);
        }";
    let blocks = 100;
    let mut region = Memory::new(4 * blocks, u32::MAX);
    let memory = vec![
        region.range("own", AccessRole::Inbox),
        region.range("own rows", AccessRole::Outbox { rank: 0, row: 16, stride: 16 }),
    ];
    let start = Instant::now();
    let report =
        run(&[launch(&build(body).unwrap(), blocks as u32, 1000, memory)], &Options::default()).unwrap();
    assert_eq!(report.clusters, 100);
    assert!(region.words().iter().all(|&w| w == 1));
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn a_seed_replays_a_run() {
    let once = |seed| {
        let mut regions = [Memory::new(4, u32::MAX), Memory::new(4, u32::MAX)];
        let mut outputs = [Memory::new(4, 0), Memory::new(4, 0)];
        let launches = swap(&mut regions, &mut outputs);
        run(&launches, &Options::new(Order::Random(seed))).unwrap()
    };
    let reports = (0..20).map(once).collect::<Vec<_>>();
    assert_eq!(reports, (0..20).map(once).collect::<Vec<_>>());
    assert!(reports.iter().any(|r| r != &reports[0]), "seeds differ");
}

#[test]
fn runs_on_several_threads_do_not_meet() {
    let library = build(&NEIGHBOUR.replace("BARRIER", "device::block_barrier();")).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let mut out = Memory::new(64, 0);
                    let launch = launch(&library, 20, 64, vec![out.range("out", AccessRole::Output)]);
                    run(&[launch], &Options::default()).unwrap();
                    assert_eq!(out.words()[0], 63);
                }
            });
        }
    });
}

#[test]
fn a_launch_that_no_gpu_takes_is_refused() {
    let library = build("device::grid_wait();").unwrap();
    let good = launch(&library, 4, 32, vec![]);
    for (launch, reason) in [
        (Launch { entry: "other".into(), ..good.clone() }, "there are kernel"),
        (Launch { threads: 1025, ..good.clone() }, "1 to 1024"),
        (Launch { threads: 0, ..good.clone() }, "1 to 1024"),
        (Launch { cluster: 3, ..good.clone() }, "multiple of the cluster of 3"),
        (Launch { cluster: 0, ..good.clone() }, "1 to 16"),
        (Launch { cluster: 32, grid: (32, 1), ..good.clone() }, "1 to 16"),
        (Launch { grid: (1 << 31, 4), ..good.clone() }, "at most"),
        (Launch { grid: (4, 1 << 16), ..good.clone() }, "at most 65535"),
    ] {
        let error = run(&[launch], &Options::default()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let nothing = Launch { grid: (0, 1), ..good };
    assert_eq!(run(&[nothing], &Options::default()).unwrap().clusters, 0);
}

#[test]
fn a_source_that_does_not_compile_shows_where() {
    let error = build("int x = 1;\n  nonsense;\n").unwrap_err().to_string();
    assert!(error.contains("cannot compile `test`") && error.contains(">   nonsense;"), "{error}");
}

/// A function whose frame of `bytes` bytes is written from end to end, which then calls `next`.
fn deep(name: &str, bytes: usize, next: &str) -> String {
    format!(
        "__attribute__((noinline)) void {name}(u32* out) {{
            char frame[{bytes}];
            for (u32 i = 0; i < {bytes}; i++) frame[i] = (char)(i + device::thread());
            asm volatile(\"\" ::\"r\"(frame) : \"memory\");
            {next};
            for (u32 i = 0; i < {bytes}; i++)
                if (frame[i] != (char)(i + device::thread())) __builtin_trap();
        }}"
    )
}

#[test]
fn frames_that_fit_one_by_one_are_held_together() {
    let write =
        "device::grid_wait(); device::block_barrier(); device::store4(out + device::thread(), 7, true)";
    let functions = [
        deep("innermost", 18_000, write),
        deep("middle", 18_000, "innermost(out)"),
        deep("outermost", 19_000, "middle(out)"),
    ];
    let library = build_with(&functions.concat(), "outermost(args.a);").unwrap();
    let mut out = Memory::new(256, 0);
    let launch = launch(&library, 1, 256, vec![out.range("out", AccessRole::Output)]);
    for order in [Order::Forward, Order::Reverse, Order::Random(1)] {
        run(std::slice::from_ref(&launch), &Options::new(order)).unwrap();
    }
    assert_eq!(out.words(), [7; 256]);
}

#[test]
fn frames_too_large_for_any_stack_are_refused() {
    let too_large = |functions: &str, body: &str| {
        let error = build_with(functions, body).unwrap_err();
        assert!(matches!(error, SimError::TooLarge { .. }), "{error}");
        error.to_string()
    };
    let functions = [deep("inner", 600_000, ""), deep("outer", 600_000, "inner(out)")];
    let text = too_large(&functions.concat(), "outer(args.a);");
    assert!(text.contains("needs 120") && text.contains("split the pattern"), "{text}");
    let text = too_large("", "char frame[2000000]; asm volatile(\"\" ::\"r\"(frame) : \"memory\");");
    assert!(text.contains("needs 200"), "{text}");
    let text = too_large(
        "",
        "char* frame = (char*)__builtin_alloca(args.a[0]); asm volatile(\"\" ::\"r\"(frame) : \"memory\");",
    );
    assert!(text.contains("an amount that is not known"), "{text}");
}
