//! Which schedule and geometry serve how many tokens.

use super::{DeviceModel, Geometry, LaunchShape, Range, Rows, Schedule};
use crate::phases::Phases;
use crate::{MAX_TOKENS, Program};

/// Decides geometries.
#[derive(Clone, Debug)]
pub struct Planner<'a> {
    /// By the schedule that serves where nothing else is said.
    rows: Rows<'a>,
    /// What is said: from so many tokens on, in order.
    chosen: Vec<(u64, Schedule)>,
}

impl<'a> Planner<'a> {
    /// A planner for `program` on `device`, of a group without forks.
    pub fn new(
        program: &'a Program,
        device: DeviceModel,
        ranks_per_device: u32,
        early_trigger: bool,
    ) -> Self {
        let rows = Rows {
            program,
            schedule: Schedule::of(program),
            device,
            ranks_per_device,
            forks: 0,
            early_trigger,
            crosses_exchange: Phases::of(program).crosses_exchange(program),
        };
        Planner { rows, chosen: Vec::new() }
    }

    /// For a group with `forks` forks.
    #[must_use]
    pub fn with_forks(mut self, forks: u32) -> Self {
        self.rows.forks = forks;
        self
    }

    /// With schedules chosen by hand, each for launches of so many tokens and more, up to where the next begins. They must
    /// serve the program: see [`Schedule::refusal`].
    #[must_use]
    pub fn with_schedules(mut self, from: impl IntoIterator<Item = (u64, Schedule)>) -> Self {
        self.chosen = from.into_iter().collect();
        self.chosen.sort_by_key(|(from, _)| *from);
        self
    }

    /// The schedules that there are, each with the least tokens that it serves, in order.
    pub fn schedules(&self) -> Vec<(u64, Schedule)> {
        let mut all = vec![(1, self.rows.schedule)];
        for &(from, schedule) in &self.chosen {
            all.retain(|(before, _)| *before < from.max(1));
            all.push((from.max(1), schedule));
        }
        all.dedup_by_key(|(_, schedule)| *schedule);
        all
    }

    /// The schedule of a launch of `tokens` tokens.
    pub fn schedule(&self, tokens: u64) -> Schedule {
        let chosen = self.chosen.iter().rev().find(|(from, _)| *from <= tokens.max(1));
        chosen.map_or(self.rows.schedule, |(_, schedule)| *schedule)
    }

    /// The shape of a launch of `tokens` tokens, 1 to [`MAX_TOKENS`]; what is outside is taken as the nearest.
    pub fn shape(&self, tokens: u64) -> LaunchShape {
        let tokens = tokens.clamp(1, MAX_TOKENS);
        let rows = Rows { schedule: self.schedule(tokens), ..self.rows };
        (rows.schedule.def().shape)(&rows, tokens)
    }

    /// The most tokens that one launch takes, whatever the region holds.
    pub fn tokens_per_launch(&self) -> u64 {
        let most = |(_, schedule): (u64, Schedule)| {
            (schedule.def().most)(&Rows { schedule, ..self.rows }).min(MAX_TOKENS)
        };
        self.schedules().into_iter().map(most).min().unwrap_or(MAX_TOKENS)
    }

    /// Every geometry that a launch of up to `max_tokens` tokens may take, without repetition.
    pub fn geometries(&self, max_tokens: u64) -> Vec<Geometry> {
        let mut geometries = Vec::new();
        for range in self.ranges(max_tokens) {
            if !geometries.contains(&range.geometry) {
                geometries.push(range.geometry);
            }
        }
        geometries
    }

    /// What geometry serves which tokens, up to `max_tokens`, in order.
    pub fn ranges(&self, max_tokens: u64) -> Vec<Range> {
        let max_tokens = max_tokens.min(MAX_TOKENS);
        let schedules = self.schedules();
        let mut ranges = Vec::new();
        let mut from = 1;
        while from <= max_tokens {
            // A geometry of a schedule serves one range of tokens, so a bisection finds its end.
            let geometry = self.shape(from).geometry;
            let next = schedules.iter().map(|(next, _)| *next).find(|next| *next > from);
            let (mut up_to, mut beyond) = (from, next.unwrap_or(u64::MAX).min(max_tokens + 1));
            while beyond - up_to > 1 {
                let middle = up_to + (beyond - up_to) / 2;
                match self.shape(middle).geometry == geometry {
                    true => up_to = middle,
                    false => beyond = middle,
                }
            }
            ranges.push(Range { from, up_to, geometry });
            from = up_to + 1;
        }
        ranges
    }
}
