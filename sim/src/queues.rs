//! The launches of a run: one queue per rank, as streams are, and which of their clusters begins next.

use crate::Options;
use crate::error::SimError;
use crate::launch::Launch;
use crate::library::Entry;
use crate::order::Chooser;
use crate::shared::Layout;
use std::collections::HashMap;

/// A launch, and how far it has come.
pub(crate) struct Queued {
    pub entry: Entry,
    pub layout: Layout,
    /// Some of its threads fall asleep. Those of others do not, so that ranks draw far apart.
    pub sleepy: bool,
    pub previous: Option<usize>,
    pub next: Option<usize>,
    /// When it may begin: a rank may be late.
    start_at: u64,
    /// May begin before its predecessor has ended.
    early: bool,
    began: bool,
    /// Clusters that have not begun; the last one is next.
    pending: Vec<u32>,
    clusters: usize,
    blocks: u32,
    /// Blocks that let the dependents begin.
    triggered: u32,
}

impl Queued {
    pub fn ended(&self) -> bool {
        self.began && self.clusters == 0
    }
}

pub(crate) struct Queues {
    pub launches: Vec<Queued>,
    /// The next launch of each rank that has not begun.
    heads: Vec<Option<usize>>,
    /// Launches with clusters that have not begun.
    pending: Vec<usize>,
}

impl Queues {
    /// Everything that chance decides about a launch is decided here.
    pub fn new(
        launches: &[Launch],
        options: &Options,
        chooser: &mut Chooser,
        now: u64,
    ) -> Result<Queues, SimError> {
        let mut queues =
            Queues { launches: Vec::with_capacity(launches.len()), heads: Vec::new(), pending: Vec::new() };
        let mut last = HashMap::new();
        for (i, launch) in launches.iter().enumerate() {
            launch.check()?;
            let previous = last.insert(launch.rank, i);
            match previous {
                Some(previous) => queues.launches[previous].next = Some(i),
                None => queues.heads.push(Some(i)),
            }
            let chance = if chooser.perhaps(4) { 1 << chooser.below(22) } else { 0 };
            let asked = options.delays.iter().find(|(rank, _)| *rank == launch.rank);
            let delay =
                asked.map_or(chance, |(_, delay)| u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX));
            queues.launches.push(Queued {
                entry: launch.library.entry(launch)?,
                layout: Layout::default(),
                sleepy: chooser.perhaps(2),
                previous,
                next: None,
                start_at: now.saturating_add(delay),
                early: launch.dependent && chooser.perhaps(2),
                began: false,
                pending: Vec::new(),
                clusters: (launch.grid.0 / launch.cluster) as usize * launch.grid.1 as usize,
                blocks: launch.grid.0 * launch.grid.1,
                triggered: 0,
            });
        }
        Ok(queues)
    }

    /// Begins the launches that may, and gives those of them that have no block, and so have ended.
    pub fn begin(&mut self, now: u64, chooser: &mut Chooser) -> Vec<usize> {
        let mut ended = Vec::new();
        for rank in 0..self.heads.len() {
            while let Some(i) = self.heads[rank].filter(|&i| self.may_begin(i, now)) {
                let launch = &mut self.launches[i];
                launch.began = true;
                launch.pending = chooser.stack(launch.clusters);
                self.heads[rank] = launch.next;
                match launch.clusters {
                    0 => ended.push(i),
                    _ => self.pending.push(i),
                }
            }
        }
        ended
    }

    fn may_begin(&self, i: usize, now: u64) -> bool {
        let launch = &self.launches[i];
        let after = launch.previous.is_none_or(|p| {
            let previous = &self.launches[p];
            previous.ended() || launch.early && previous.began && previous.triggered == previous.blocks
        });
        after && now >= launch.start_at
    }

    /// A launch, and which of its clusters begins next; `None` if all have begun that may.
    pub fn next_cluster(&mut self, chooser: &mut Chooser) -> Option<(usize, u32)> {
        if self.pending.is_empty() {
            return None;
        }
        let chosen = chooser.one_of(self.pending.len());
        let i = self.pending[chosen];
        let cluster = self.launches[i].pending.pop()?;
        if self.launches[i].pending.is_empty() {
            self.pending.remove(chosen);
        }
        Some((i, cluster))
    }

    /// Blocks of `launch` let its dependents begin.
    pub fn triggered(&mut self, launch: usize, blocks: u32) {
        self.launches[launch].triggered += blocks;
    }

    /// A cluster of `launch` has ended; answers whether that was the last.
    pub fn cluster_ended(&mut self, launch: usize) -> bool {
        self.launches[launch].clusters -= 1;
        self.launches[launch].ended()
    }

    /// When the next rank comes that is late.
    pub fn next_start(&self, now: u64) -> Option<u64> {
        let starts = self.heads.iter().flatten().map(|&i| self.launches[i].start_at);
        starts.filter(|&at| at > now).min()
    }

    pub fn all_ended(&self) -> bool {
        self.heads.iter().all(Option::is_none) && self.launches.iter().all(Queued::ended)
    }
}
