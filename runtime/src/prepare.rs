//! The collective that makes kernels.

use crate::error::{Error, ErrorKind};
use crate::group::agreement::Agreement;
use crate::group::{Rank, whole_group};
use crate::kernel::Inner;
use crate::plan::Plan;
use crate::plan::options::Prepare;
use seamline_codegen::Graph;
use std::sync::Arc;

/// One rank's part; the other ranks prepare from threads of their own.
pub(crate) fn prepare(graph: &'static Graph, rank: &Rank, options: &Prepare) -> Result<Arc<Inner>, Error> {
    let located = |e: Error| e.of(&graph.name, Some(rank.index));
    if rank.group_size() == 1 {
        return plan(graph, rank, options).and_then(|plan| Inner::new(rank, plan)).map_err(located);
    }
    let session = rank.group.rendezvous.session();
    let plan = plan(graph, rank, options).map_err(located);
    // A rank that fails comes to the meetings too, so that the others fail with its error, not by waiting.
    let mine = plan.as_ref().map(|p| p.agreement.clone()).map_err(Clone::clone);
    let all = session.plans.join(rank.index, mine, options.timeout).map_err(located)?;
    agree(&all.into_iter().collect::<Result<Vec<_>, Error>>()?).map_err(located)?;
    let kernel = plan.and_then(|plan| Inner::new(rank, plan)).map_err(located);
    let outcome = kernel.as_ref().map(|_| ()).map_err(Clone::clone);
    session
        .kernels
        .join_again(rank.index, outcome, options.timeout)
        .map_err(located)?
        .into_iter()
        .collect::<Result<Vec<()>, Error>>()?;
    kernel
}

fn plan(graph: &'static Graph, rank: &Rank, options: &Prepare) -> Result<Plan, Error> {
    let group = &rank.group;
    Plan::new(graph, (&group.info, group.size()), || group.family.close(&graph.name), options)
}

/// All ranks' parts, from one thread.
pub(crate) fn prepare_all(
    graph: &'static Graph,
    ranks: &[Rank],
    options: &Prepare,
) -> Result<Vec<Arc<Inner>>, Error> {
    let located = |e: Error| e.of(&graph.name, None);
    whole_group(("rank", "ranks"), ranks.iter()).map_err(located)?;
    // Nothing is slow yet, so all ranks are planned before any is built.
    let plans = ranks
        .iter()
        .map(|rank| plan(graph, rank, options))
        .collect::<Result<Vec<_>, _>>()
        .map_err(located)?;
    agree(&plans.iter().map(|p| p.agreement.clone()).collect::<Vec<_>>()).map_err(located)?;
    ranks.iter().zip(plans).map(|(rank, plan)| Inner::new(rank, plan).map_err(located)).collect()
}

/// Whether all ranks prepare the same.
fn agree(all: &[Agreement]) -> Result<(), Error> {
    for (rank, other) in all.iter().enumerate().skip(1) {
        if let Some((what, expected, got)) = all[0].difference(other) {
            return Err(ErrorKind::Disagree { rank: rank as u32, what, expected, got }.into());
        }
    }
    Ok(())
}
