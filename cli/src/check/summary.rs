//! One line for a pattern and an executor, and what went wrong there.

use super::report::Row;
use std::collections::BTreeSet;
use std::fmt::Display;

/// The lines of all cases of one pattern: a summary per executor, and each way to fail once.
pub fn text(cases: &[Row]) -> String {
    let mut executors: Vec<&str> = Vec::new();
    for case in cases {
        if !executors.contains(&case.executor.as_str()) {
            executors.push(&case.executor);
        }
    }
    let of = |executor| cases.iter().filter(|case| case.executor == executor).collect::<Vec<_>>();
    executors.into_iter().map(|executor| one(executor, &of(executor))).collect()
}

fn one(executor: &str, cases: &[&Row]) -> String {
    let equal = cases.iter().filter(|case| case.equal).count();
    let verdict = match cases.iter().find(|case| !case.equal) {
        None => "equal",
        Some(_) if cases.iter().any(|case| case.difference.is_some()) => "DIFFERENT",
        Some(_) => "NOT RUN",
    };
    let path = cases.first().map_or("", |case| &case.pattern);
    let ranks = list(cases.iter().map(|case| case.ranks));
    let tokens = list(cases.iter().map(|case| case.tokens));
    let inputs = cases.iter().map(|case| case.inputs).collect::<BTreeSet<_>>().len();
    let inputs =
        if inputs == 1 { "1 kind of inputs".to_owned() } else { format!("{inputs} kinds of inputs") };
    let mut text = format!(
        "{verdict:9}  {path} on {executor}: {equal} of {} cases, N={ranks}, T={tokens}, {inputs}{}\n",
        cases.len(),
        errors(cases)
    );
    let mut told: Vec<&str> = Vec::new();
    for case in cases {
        let why = match (&case.difference, &case.reason) {
            (Some(d), _) => format!(
                "rank {}, `{}`, token {}, channel {}: expected {}, got {}",
                d.rank, d.output, d.token, d.channel, d.expected, d.got
            ),
            (None, Some(reason)) if !told.contains(&reason.as_str()) => {
                told.push(reason);
                reason.clone()
            }
            _ => continue,
        };
        let variant = if case.variant.is_empty() { String::new() } else { format!("{}, ", case.variant) };
        text += &format!("           {variant}N={}, T={}, {}: {why}\n", case.ranks, case.tokens, case.inputs);
    }
    text
}

fn list<T: Ord + Display>(values: impl Iterator<Item = T>) -> String {
    let values = values.collect::<BTreeSet<_>>();
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The largest error of each output, among inputs that let one be small.
fn errors(cases: &[&Row]) -> String {
    let mut worst: Vec<(&str, f64)> = Vec::new();
    for error in cases.iter().flat_map(|case| &case.errors).filter(|error| !error.by_design) {
        let Some(found) = error.error else { continue };
        match worst.iter_mut().find(|(output, _)| *output == error.output) {
            Some((_, most)) => *most = most.max(found),
            None => worst.push((&error.output, found)),
        }
    }
    if worst.is_empty() {
        return String::new();
    }
    let worst = worst.iter().map(|(output, error)| format!("{output} {error:.1e}"));
    format!("; largest error: {}", worst.collect::<Vec<_>>().join(", "))
}
