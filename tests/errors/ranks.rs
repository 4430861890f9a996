//! Groups, and what all ranks of one must agree in.

use super::support::*;
use seamline::prelude::*;
use seamline::{Error, ErrorKind};

#[test]
fn groups_of_no_ranks_or_too_many() {
    for got in [0, 9] {
        assert_error!(Group::reference(got).unwrap_err(), ErrorKind::GroupSize { .. }, "must have 1 to 8");
    }
}

/// Two ranks' kernels, their memory, and a launch that `change` may spoil.
fn launch_all(
    kernels: &[Kernel<Seam>],
    change: impl for<'a> FnOnce(&mut Vec<SeamArgs<'a>>),
) -> Result<(), Error> {
    let mut memories: Vec<_> = kernels.iter().map(|_| Memory::new()).collect();
    let mut args: Vec<_> = memories.iter_mut().map(Memory::args).collect();
    change(&mut args);
    let result = seamline::launch_all(kernels, [Queue::host()], args);
    let stored = memories.iter().flat_map(|m| &m.sum_out).any(|x| x.to_f32() != 1.0);
    assert_eq!(stored, result.is_ok(), "a refused launch ran, or one that was not did not");
    result
}

#[test]
fn one_rank_of_many_cannot_run_alone_on_a_host() {
    let kernels = Seam::prepare_all(&Group::reference(2).unwrap(), &options()).unwrap();
    let error = kernels[0].launch(Queue::host(), Memory::new().args()).unwrap_err();
    assert_error!(error, ErrorKind::NeedsLaunchAll { ranks: 2, .. }, "use `launch_all`");
    launch_all(&kernels, |_| ()).unwrap();
}

#[test]
fn kernels_of_another_group() {
    let prepared = || Seam::prepare_all(&Group::reference(2).unwrap(), &options()).unwrap();
    let (first, second) = (prepared(), prepared());
    let mixed = [first[0].clone(), second[1].clone()];
    assert_error!(
        launch_all(&mixed, |_| ()).unwrap_err(),
        ErrorKind::OtherGroup { at: 1, got_rank: 1, .. },
        "kernel 1 is rank 1 of another group"
    );
    let swapped = [first[1].clone(), first[0].clone()];
    assert_error!(
        launch_all(&swapped, |_| ()).unwrap_err(),
        ErrorKind::OtherGroup { at: 0, .. },
        "in rank order"
    );
    assert_error!(
        launch_all(&first[..1], |_| ()).unwrap_err(),
        ErrorKind::Count { what: "kernels", expected: 2, got: 1, .. },
        "got 1 kernels for a group of 2 ranks"
    );
}

#[test]
fn kernels_that_were_prepared_apart() {
    let ranks = Group::reference(2).unwrap();
    let few = Seam::prepare_all(&ranks, &options()).unwrap();
    let many = Seam::prepare_all(&ranks, &options().exchange_tokens(2).variants(&[&[]])).unwrap();
    let mixed = [few[0].clone(), many[1].clone()];
    assert_error!(
        launch_all(&mixed, |_| ()).unwrap_err(),
        ErrorKind::OtherKernel { at: 1, .. },
        "kernel 1 was prepared with another set of variants"
    );
}

#[test]
fn ranks_that_launch_different_tokens() {
    let kernels = Seam::prepare_all(&Group::reference(2).unwrap(), &options()).unwrap();
    assert_error!(
        launch_all(&kernels, |args| args[1].tokens = 2).unwrap_err(),
        ErrorKind::TokensDiffer { rank: 1, expected: 3, got: 2, .. },
        "rank 1 launches 2 tokens, and rank 0 3"
    );
}

#[test]
fn not_one_bundle_per_rank() {
    let kernels = Seam::prepare_all(&Group::reference(2).unwrap(), &options()).unwrap();
    assert_error!(
        launch_all(&kernels, |args| args.truncate(1)).unwrap_err(),
        ErrorKind::Count { what: "bundles", .. },
        "got 1 bundles"
    );
}

#[test]
fn not_all_ranks_of_a_group() {
    let ranks = Group::reference(3).unwrap();
    let error = Seam::prepare_all(&ranks[..2], &options()).unwrap_err();
    assert_error!(error, ErrorKind::Count { what: "ranks", expected: 3, got: 2, .. }, "got 2 ranks");
    assert_error!(seamline::reset(&ranks[1..]).unwrap_err(), ErrorKind::Count { .. }, "one per rank");
    assert_error!(seamline::reset(&[]).unwrap_err(), ErrorKind::Count { got: 0, .. }, "got 0 ranks");
}
