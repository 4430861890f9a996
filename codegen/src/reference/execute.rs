//! All ranks at once, token by token, over the machine's cores.

use super::environment;
use super::frame::{Frame, Pass};
use super::inputs::BoundRank;
use super::real::Real;
use crate::program::{Inst, Reg};
use std::{mem, panic, thread};

/// What one rank stored.
pub(super) struct RankResult<R: Real> {
    /// Per output, `[T, H]`.
    pub(super) outputs: Vec<Vec<R::Stored>>,
    /// Row indices outside `[-1, P)`.
    pub(super) stray_rows: u64,
}

/// Runs every rank. Tokens are independent of each other, so the split over threads shows in no bit.
pub(super) fn execute<R: Real>(ranks: &[BoundRank<'_>], tokens: usize) -> Vec<RankResult<R>> {
    let mut results: Vec<RankResult<R>> = ranks
        .iter()
        .map(|rank| RankResult { outputs: vec![Vec::new(); rank.program.outputs.len()], stray_rows: 0 })
        .collect();
    if tokens == 0 {
        return results;
    }
    let workers = thread::available_parallelism().map_or(1, usize::from).min(tokens);
    let share = tokens.div_ceil(workers);
    thread::scope(|scope| {
        let launch = scope.spawn(|| {
            environment::restore();
            let mut frames: Vec<Frame<'_, R>> = ranks.iter().map(Frame::new).collect();
            advance(&mut frames, Pass::Launch);
            frames
        });
        let launch = launch.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
        let workers: Vec<_> = (0..tokens)
            .step_by(share)
            .map(|first| {
                let mut frames = launch.clone();
                scope.spawn(move || {
                    environment::restore();
                    for token in first..tokens.min(first + share) {
                        advance(&mut frames, Pass::Token(token));
                    }
                    frames.into_iter().map(Frame::finish).collect::<Vec<_>>()
                })
            })
            .collect();
        for worker in workers {
            let part = worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
            for (whole, part) in results.iter_mut().zip(part) {
                whole.stray_rows += part.stray_rows;
                for (whole, part) in whole.outputs.iter_mut().zip(part.outputs) {
                    whole.extend_from_slice(&part);
                }
            }
        }
    });
    results
}

/// Takes all ranks through one pass, from exchange to exchange.
///
/// Ranks whose variants differ have different lines, but meet at the same exchanges.
fn advance<R: Real>(frames: &mut [Frame<'_, R>], pass: Pass) {
    let mut lines = vec![0; frames.len()];
    loop {
        for (frame, line) in frames.iter_mut().zip(&mut lines) {
            *line = frame.run(*line, pass);
        }
        if frames.iter().zip(&lines).any(|(frame, &line)| line == frame.lines()) {
            return;
        }
        exchange(frames, &lines);
        lines.iter_mut().for_each(|line| *line += 1);
    }
}

/// Rank 0's value plus the others' in rank order: summed once, the same for every rank.
fn exchange<R: Real>(frames: &mut [Frame<'_, R>], lines: &[usize]) {
    let operand = |frame: &Frame<'_, R>, line: usize| match frame.inst(line) {
        Inst::Exchange(Reg(operand)) => operand as usize,
        other => unreachable!("ranks met at {other:?}, which exchanges nothing"),
    };
    let Some((first, others)) = frames.split_first_mut() else { return };
    let mut sum = mem::take(&mut first.values[lines[0]]);
    sum.copy_from_slice(&first.values[operand(first, lines[0])]);
    for (frame, &line) in others.iter().zip(&lines[1..]) {
        for (sum, &x) in sum.iter_mut().zip(&frame.values[operand(frame, line)]) {
            *sum = *sum + x;
        }
    }
    for (frame, &line) in others.iter_mut().zip(&lines[1..]) {
        frame.values[line].copy_from_slice(&sum);
    }
    first.values[lines[0]] = sum;
}
