//! Dims and variants.

use super::support::*;
use seamline::executor::{Executor, HostKernel};
use seamline::prelude::*;
use seamline::{Error, ErrorKind, Schedule, Variant};
use std::sync::Arc;

#[test]
fn a_variant_that_was_not_prepared() {
    let kernel = kernel(&options().variants(&[&[], &["shared"]]));
    let mut memory = Memory::new();
    let mut args = memory.args();
    args.weights = None;
    assert_error!(
        kernel.launch(Queue::host(), args).unwrap_err(),
        ErrorKind::Variant { .. },
        "no `weights`",
        "prepared for every optional input, or no `shared`",
        "`Prepare::variants`"
    );
    let mut args = memory.args();
    args.shared = None;
    kernel.launch(Queue::host(), args).unwrap();
    assert!(memory.sum_out.iter().all(|x| x.to_f32() == 1.0));
}

#[test]
fn variants_by_wrong_names() {
    assert_error!(
        prepare(&options().variants(&[&["gamma"]])),
        ErrorKind::UnknownVariant { .. },
        "`gamma` is not an optional input",
        "`weights`, `shared`"
    );
}

#[test]
fn more_variants_than_are_compiled_unasked() {
    let rank = &Group::reference(1).unwrap()[0];
    assert_error!(
        Optional::prepare(rank, &Prepare::new(1)).unwrap_err(),
        ErrorKind::TooManyVariants { optional: 3, variants: 8, .. },
        "`a`, `b`, `c`",
        "`Prepare::variants`"
    );
    assert_eq!(
        Optional::prepare(rank, &Prepare::new(1).variants(&[&["a", "c"]])).unwrap().variants().len(),
        1
    );
}

#[test]
fn schedules_that_cannot_run_it() {
    for schedule in [Schedule::Owner, Schedule::OneShot] {
        assert_error!(
            prepare(&options().schedule(schedule)),
            ErrorKind::Schedule { .. },
            schedule.name(),
            "exchanges nothing, without a collective or a second rank: take `local`"
        );
    }
    let ranks = Group::reference(2).unwrap();
    let several = |options: &Prepare| Seam::prepare_all(&ranks, options);
    for options in [options().schedule(Schedule::Local), options().schedule_from(3, Schedule::Local)] {
        assert_error!(
            several(&options).unwrap_err(),
            ErrorKind::Schedule { schedule: "local", .. },
            "its ranks exchange rows: take `one_shot` or `owner`"
        );
    }
    several(&options().schedule(Schedule::Owner)).unwrap();
}

#[test]
fn dims_that_do_not_fit() {
    let unbound = Prepare::new(T).top_k(4);
    assert_error!(prepare(&unbound), ErrorKind::Bind(_), "`hidden` of `seam` is not bound", "`.hidden(…)`");
    assert_error!(prepare(&options().hidden(0)), ErrorKind::Bind(_), "`hidden`", "is 0", "1..=65536");
    assert_error!(prepare(&options().hidden(65_537)), ErrorKind::Bind(_), "65537");
    assert_error!(prepare(&options().top_k(0)), ErrorKind::Bind(_), "`top_k`", "is 0", "1..=64");
    assert_error!(prepare(&options().dtype(DType::F16)), ErrorKind::Bind(_), "fixed to bf16", "got f16");
    assert_error!(
        prepare(&Prepare::new(0).hidden(8).top_k(1)),
        ErrorKind::MaxTokens { got: 0, .. },
        "`max_tokens` is 0"
    );
    assert_error!(prepare(&options().exchange_tokens(0)), ErrorKind::ExchangeTokens { got: 0, .. }, "is 0");
}

/// Exchanges through memory; never gets as far as to compile.
#[derive(Debug)]
struct Unreached;

impl Executor for Unreached {
    fn name(&self) -> &'static str {
        "unreached"
    }

    fn compile(&self, _: &[Variant]) -> Result<Box<dyn HostKernel>, Error> {
        unreachable!("there was memory for what no machine has")
    }
}

#[test]
fn exchange_memory_that_the_host_does_not_have() {
    let ranks = Group::with_executor(Arc::new(Unreached), 8).unwrap();
    let most = (i32::MAX / 8) as usize;
    let options = Prepare::new(T).hidden(65_536).top_k(1).exchange_tokens(most);
    assert_error!(
        Seam::prepare_all(&ranks, &options).unwrap_err(),
        ErrorKind::HostMemory { .. },
        "has no 844424926986240 bytes",
        "a smaller `exchange_tokens`"
    );
}
