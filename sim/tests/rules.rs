//! Each rule that a kernel can break, broken: the run ends and says who did what, where.

#[path = "support/kernel.rs"]
mod kernel;

use kernel::{Memory, build, launch, run};
use seamline_sim::{AccessRole, At, Fault, Launch, Library, Options, Order, SimError};
use std::sync::Arc;

/// Runs `body` on `launch` and gives the rule that it breaks.
fn broken(body: &str, launch: impl Fn(&Arc<Library>) -> Launch, order: Order) -> (At, Fault, String) {
    match run(&[launch(&build(body).unwrap())], &Options::new(order)) {
        Err(error @ SimError::Fault { .. }) => {
            let text = error.to_string();
            let SimError::Fault { at, fault, .. } = error else { unreachable!() };
            (*at, fault, text)
        }
        Err(other) => panic!("{other}"),
        Ok(report) => panic!("nothing was noticed: {report:?}"),
    }
}

/// As [`broken`], on one block of 32 threads with one argument of 64 bytes.
fn broken_on(usage: AccessRole, body: &str) -> Fault {
    let mut memory = Memory::new(16, u32::MAX);
    let range = memory.range("a", usage);
    broken(body, |library| launch(library, 1, 32, vec![range.clone()]), Order::Forward).1
}

#[test]
fn an_access_beyond_an_argument() {
    let mut memory = Memory::new(8, 0);
    let range = memory.range("residual_in", AccessRole::Input);
    let launch = |library: &_| Launch { rank: 3, ..launch(library, 2, 32, vec![range.clone()]) };
    let body = "device::grid_wait(); u32 w[4];\n  if (device::block() == 1) device::load_const16(w, args.a + device::thread(), device::thread() == 8);";
    let (at, fault, text) = broken(body, launch, Order::Reverse);
    assert_eq!((at.rank, at.block, at.thread, at.line), (3, (1, 0), 8, 4));
    let expected = Fault::Memory {
        verb: "reads, as constant memory,",
        bytes: 16,
        place: "the address 0 bytes past the end of `residual_in`, which has 32 bytes".into(),
    };
    assert_eq!(fault, expected);
    assert_eq!(
        text,
        "test: `kernel` (launch 0) rank 3 block 1 thread 8 at test.cu:4 (`if (device::block() == 1) \
         device::load_const16(w, args.a + device::thread(), device::thread() == 8);`): reads, as constant memory, 16 bytes at the \
         address 0 bytes past the end of `residual_in`, which has 32 bytes: no argument allows that\n  replay: order reverse"
    );
}

#[test]
fn an_input_is_not_written_and_an_output_is_not_constant() {
    let fault = broken_on(AccessRole::Input, "device::grid_wait(); device::store4(args.a, 1, true);");
    assert!(
        matches!(fault, Fault::Memory { verb: "writes", ref place, .. } if place == "byte 0 of `a`, an input"),
        "{fault}"
    );
    let fault = broken_on(AccessRole::Output, "device::grid_wait(); device::load_const4(args.a, true);");
    assert!(
        matches!(fault, Fault::Memory { ref place, .. } if place == "byte 0 of `a`, an output"),
        "{fault}"
    );
}

#[test]
fn an_access_that_is_off_touches_nothing() {
    let body = "device::grid_wait();
        u32 w[4];
        device::load16(w, nullptr, false);
        u32 zero = device::load_const4(nullptr, false) + w[3];
        device::store8(nullptr, w, false);
        device::exchange_arm16(nullptr, 1, false);
        device::store4(args.a + device::thread(), zero, true);";
    let mut out = Memory::new(32, 9);
    run(
        &[launch(&build(body).unwrap(), 1, 32, vec![out.range("out", AccessRole::Output)])],
        &Options::default(),
    )
    .unwrap();
    assert_eq!(out.words(), [0; 32]);
}

#[test]
fn an_address_that_is_not_aligned() {
    let fault = broken_on(
        AccessRole::Input,
        "device::grid_wait(); u32 w[4]; device::load_const16(w, args.a + 1, true);",
    );
    assert!(matches!(fault, Fault::Misaligned { bytes: 16, .. }), "{fault}");
}

#[test]
fn an_input_before_the_wait() {
    let fault = broken_on(AccessRole::Input, "device::load_const4(args.a, true); device::grid_wait();");
    assert!(fault.to_string().contains("byte 0 of `a`, an input before `grid_wait`"), "{fault}");
    let fault = broken_on(AccessRole::Control, "device::control_load(args.a); device::grid_wait();");
    assert!(matches!(fault, Fault::BeforeWait { .. }), "{fault}");
}

#[test]
fn a_block_that_never_waits() {
    let fault = broken_on(AccessRole::Input, "if (device::block() > 0) device::grid_wait();");
    assert_eq!(fault, Fault::NeverWaits);
}

#[test]
fn a_trigger_before_the_wait() {
    let fault = broken_on(AccessRole::Input, "device::grid_launch_dependents(); device::grid_wait();");
    assert_eq!(fault, Fault::TriggersBeforeWait);
}

#[test]
fn a_row_pushed_into_anothers_place() {
    let mut memory = Memory::new(16, u32::MAX);
    let rows = memory.range("region of rank 1", AccessRole::Outbox { rank: 1, row: 16, stride: 32 });
    let body = "device::grid_wait(); PUSH(args.a + 4, 1, 2, 3, 4);";
    let (_, fault, _) = broken(body, |library| launch(library, 1, 1, vec![rows.clone()]), Order::Forward);
    assert!(
        fault.to_string().contains("at another rank's row in the exchange memory of rank 1, 16 bytes"),
        "{fault}"
    );
}

#[test]
fn a_poll_of_a_peers_memory() {
    let fault =
        broken_on(AccessRole::Outbox { rank: 1, row: 16, stride: 16 }, "device::grid_wait(); POLL(args.a);");
    assert!(
        fault
            .to_string()
            .contains("polls 16 bytes at byte 0 of `a`, this rank's rows in the exchange memory of rank 1"),
        "{fault}"
    );
}

#[test]
fn a_word_that_means_empty_and_a_row_over_another() {
    let outbox = AccessRole::Outbox { rank: 1, row: 64, stride: 64 };
    let fault = broken_on(outbox, "device::grid_wait(); PUSH(args.a, 1, 2, ~0u, 4);");
    assert!(matches!(fault, Fault::PushesEmpty { .. }), "{fault}");
    let fault = broken_on(outbox, "device::grid_wait(); PUSH(args.a, 1, 2, 3, 4);");
    assert!(matches!(fault, Fault::Overwrites { .. }), "{fault}");
    let fault = broken_on(AccessRole::Inbox, "device::grid_wait(); device::exchange_arm16(args.a, 0, true);");
    assert!(matches!(fault, Fault::ArmsFull { .. }), "{fault}");
}

#[test]
fn a_barrier_that_a_thread_passes_by() {
    let body = "device::grid_wait();\n if (device::thread() != 5) device::block_barrier();";
    let fault = broken_on(AccessRole::Input, body);
    assert!(matches!(fault, Fault::EndsBeforeBarrier { ref place, .. } if place == "test.cu:4"), "{fault}");
}

#[test]
fn two_barriers_of_one_warp() {
    let body = "device::grid_wait();\n if (device::thread() < 5) device::block_barrier();\n else device::block_barrier();";
    let fault = broken_on(AccessRole::Input, body);
    assert!(
        matches!(fault, Fault::Divergent { primitive: "block_barrier", ref place } if place == "test.cu:4"),
        "{fault}"
    );
}

#[test]
fn a_shuffle_that_half_a_warp_reaches_is_a_deadlock() {
    let body = "device::grid_wait();
        if (device::thread() < 16) device::shuffle_xor(1.0f, 1);
        device::block_barrier();";
    let error =
        run(&[launch(&build(body).unwrap(), 1, 32, vec![])], &Options::default()).unwrap_err().to_string();
    assert!(
        error.contains("the other lanes of its warp") && error.contains("its block, at `block_barrier`"),
        "{error}"
    );
}

#[test]
fn a_shuffle_mask_that_is_not_a_lane() {
    assert_eq!(
        broken_on(AccessRole::Input, "device::grid_wait(); device::shuffle(1, 32);"),
        Fault::ShuffleLane { lane: 32 }
    );
}

/// A word that thread 0 writes and thread 1 reads, with `between` in between.
fn passed_on(between: &str) -> String {
    format!(
        "SEAMLINE_SHARED(float, x, 4);
        device::grid_wait();
        if (device::thread() == 0) device::store_shared(x, 1.0f);
        {between}
        if (device::thread() == 1) device::load_shared(x);"
    )
}

#[test]
fn a_missing_barrier_is_named_by_both_of_its_sides() {
    let fault = broken_on(AccessRole::Input, &passed_on("device::shuffle_xor(1.0f, 1);"));
    let expected = Fault::SharedRace {
        verb: "reads",
        earlier: "written",
        block: 0,
        thread: 0,
        place: "test.cu:5".into(),
    };
    assert_eq!(fault, expected);
    let body = passed_on("device::block_barrier();");
    run(&[launch(&build(&body).unwrap(), 2, 32, vec![])], &Options::default()).unwrap();
    let body = "SEAMLINE_SHARED(float, x, 4); device::grid_wait(); device::store_shared(x, 1.0f);";
    assert!(matches!(
        broken_on(AccessRole::Input, body),
        Fault::SharedRace { verb: "writes", earlier: "written", .. }
    ));
}

#[test]
fn shared_memory_that_nobody_has_written_or_that_is_none() {
    let body = "SEAMLINE_SHARED(float, x, 4); device::grid_wait(); device::load_shared(x + INDEX);";
    assert_eq!(broken_on(AccessRole::Input, &body.replace("INDEX", "1")), Fault::SharedUnwritten);
    assert_eq!(
        broken_on(AccessRole::Input, &body.replace("INDEX", "4")),
        Fault::SharedAddress { verb: "reads" }
    );
    let body = "device::grid_wait(); float x; device::store_shared(&x, 1.0f);";
    assert_eq!(broken_on(AccessRole::Input, body), Fault::SharedAddress { verb: "writes" });
}

/// Blocks of a cluster of two, each of which sends the other a word: `PARTS` in their order.
fn passed_between(parts: [&str; 4]) -> String {
    format!(
        "SEAMLINE_SHARED(float, x, 4);
        SEAMLINE_SHARED(u64, bar, 1);
        const u32 other = 1 - device::cluster_rank();
        {}
        device::grid_wait();
        device::cluster_wait();
        {}
        {}
        {}",
        parts[0], parts[1], parts[2], parts[3]
    )
}

const MAKE: &str =
    "if (device::thread() == 0) device::mbarrier_init(bar);\n device::cluster_arrive_relaxed();";
const EXPECT: &str = "if (device::thread() == 0) device::mbarrier_expect(bar, 4);";
const SEND: &str = "if (device::thread() == 0) device::store_async(x, bar, other, 1.0f);";
const TAKE: &str =
    "device::mbarrier_wait(bar, 0);\n if (device::load_shared(x) != 1.0f) device::store_shared(x + 8, 0.0f);";

/// What is wrong with these parts, on two clusters of two blocks.
fn between_blocks(parts: [&str; 4], order: Order) -> Option<String> {
    let library = build(&passed_between(parts)).unwrap();
    let launch = Launch { cluster: 2, ..launch(&library, 4, 64, vec![]) };
    run(&[launch], &Options::new(order)).err().map(|error| error.to_string())
}

#[test]
fn an_mbarrier_passes_words_between_blocks_in_every_order() {
    for order in [Order::Forward, Order::Reverse].into_iter().chain((0..20).map(Order::Random)) {
        assert_eq!(between_blocks([MAKE, EXPECT, SEND, TAKE], order), None);
        assert_eq!(between_blocks([MAKE, SEND, EXPECT, TAKE], order), None, "bytes before the arrival");
    }
}

#[test]
fn an_mbarriers_rules() {
    let read = TAKE.replace(
        "device::mbarrier_wait(bar, 0);",
        "device::cluster_arrive_relaxed(); device::cluster_wait();",
    );
    let twice = format!("{EXPECT} {EXPECT}");
    let more = format!("{SEND} if (device::thread() == 0) device::store_async(x, bar, other, 1.0f);");
    let late = "device::cluster_arrive_relaxed();\n if (device::thread() == 0) device::mbarrier_init(bar);";
    let remade = format!("{MAKE} if (device::thread() == 0) device::mbarrier_init(bar);");
    for (parts, expected) in [
        (
            ["device::cluster_arrive_relaxed();", EXPECT, SEND, TAKE],
            "uses an mbarrier that no thread has made",
        ),
        (
            [late, "", SEND, ""],
            "uses an mbarrier that no thread has made, or none whose barrier it is behind",
        ),
        ([&remade, EXPECT, SEND, TAKE], "makes an mbarrier that has been made before"),
        ([MAKE, EXPECT, SEND, &read], "and no barrier lies between"),
        ([MAKE, &twice, SEND, TAKE], "whose phase has had its one arrival"),
        ([MAKE, EXPECT, &more, TAKE], "no barrier lies between"),
        (
            [MAKE, "if (device::thread() == 0) device::mbarrier_expect(bar, 8);", SEND, TAKE],
            "lacks 4 bytes that it expects",
        ),
        ([MAKE, "", SEND, TAKE], "lacks the arrival that says how many bytes it expects"),
        ([MAKE, EXPECT, "", TAKE], "and 255 more: wait for an mbarrier of its block, which lacks 4 bytes"),
        ([MAKE, EXPECT, SEND, ""], "of which an mbarrier lacks"),
    ] {
        // A mistake need not show in every order.
        let orders = [Order::Forward, Order::Reverse].into_iter().chain((0..20).map(Order::Random));
        let found: Vec<_> = orders.filter_map(|order| between_blocks(parts, order)).collect();
        assert!(found.iter().any(|text| text.contains(expected)), "{expected}: {found:?}");
    }
}

#[test]
fn more_shared_memory_than_there_is() {
    let body = "SEAMLINE_SHARED(u32, box, 20000); device::grid_wait(); box[0] = 1;";
    assert_eq!(broken_on(AccessRole::Input, body), Fault::SharedMemory { bytes: 80_000, limit: 49_152 });
}

/// Two blocks of a cluster with a shared variable, and `body`.
fn broken_cluster(body: &str) -> Fault {
    let body =
        format!("SEAMLINE_SHARED(float, x, 4); SEAMLINE_SHARED(u64, bar, 1); device::grid_wait();\n{body}");
    broken(&body, |library| Launch { cluster: 2, ..launch(library, 2, 32, vec![]) }, Order::Forward).1
}

#[test]
fn distributed_shared_memory_before_the_cluster_runs() {
    assert_eq!(broken_cluster("device::store_async(x, bar, 1, 1.0f);"), Fault::ClusterNotStarted);
}

#[test]
fn distributed_shared_memory_of_a_block_that_has_gone() {
    let body = "device::cluster_arrive(); device::cluster_wait();
        if (device::cluster_rank() == 1) { for (int i = 0; i < 100; i++) device::shuffle_xor(1.0f, 1); device::store_async(x, bar, 0, 1.0f); }";
    assert_eq!(broken_cluster(body), Fault::ClusterEnded { rank: 0 });
}

#[test]
fn an_address_that_is_not_shared() {
    let start = "device::cluster_arrive(); device::cluster_wait(); ";
    let fault = broken_cluster(&format!("{start} float y = 0; device::store_async(&y, bar, 1, 1.0f);"));
    assert_eq!(fault, Fault::ClusterAddress { rank: 1, size: 2 });
    let fault = broken_cluster(&format!("{start} device::store_async(x + 6, bar, 1, 1.0f);"));
    assert_eq!(fault, Fault::ClusterAddress { rank: 1, size: 2 });
    let fault = broken_cluster(&format!("{start} device::store_async(x, bar, 2, 1.0f);"));
    assert_eq!(fault, Fault::ClusterAddress { rank: 2, size: 2 });
}

#[test]
fn halves_of_a_cluster_barrier_that_do_not_alternate() {
    assert_eq!(broken_cluster("device::cluster_arrive(); device::cluster_arrive();"), Fault::ArrivesTwice);
    assert_eq!(broken_cluster("device::cluster_wait();"), Fault::WaitsUnarrived);
}
