//! Few cases in which every level of each factor meets every level of each other one.

use std::collections::BTreeSet;

/// Two factors, each at a level.
type Pair = [(usize, usize); 2];

/// Rows with a level per factor, `levels[factor]` of them, such that every pair of levels of two factors is in a row.
///
/// Greedy: a row begins with the first pair that no row has yet, and takes for each other factor the level that brings
/// most new pairs. The same levels always give the same rows.
pub fn pairwise(levels: &[usize]) -> Vec<Vec<usize>> {
    let mut missing = BTreeSet::new();
    for second in 0..levels.len() {
        for first in 0..second {
            let all = (0..levels[first]).flat_map(|a| (0..levels[second]).map(move |b| (a, b)));
            missing.extend(all.map(|(a, b)| [(first, a), (second, b)]));
        }
    }
    let mut rows = Vec::new();
    while let Some(pair) = missing.pop_first() {
        let mut row: Vec<Option<usize>> = vec![None; levels.len()];
        pair.iter().for_each(|&(factor, level)| row[factor] = Some(level));
        for factor in 0..levels.len() {
            if row[factor].is_none() {
                let new = |level| pairs(&row, (factor, level)).filter(|p| missing.contains(p)).count();
                // Where nothing is new, levels take turns.
                let turns = (0..levels[factor]).map(|i| (rows.len() + i) % levels[factor]);
                row[factor] = turns.rev().max_by_key(|&level| new(level));
            }
        }
        let row: Vec<usize> = row.into_iter().flatten().collect();
        missing.retain(|[(first, a), (second, b)]| row[*first] != *a || row[*second] != *b);
        rows.push(row);
    }
    rows
}

/// What `new` makes with the levels that `row` has.
fn pairs(row: &[Option<usize>], new: (usize, usize)) -> impl Iterator<Item = Pair> {
    let set = row.iter().enumerate().filter_map(|(factor, level)| Some((factor, (*level)?)));
    set.map(move |old| if old < new { [old, new] } else { [new, old] })
}

#[test]
fn every_pair_of_levels_is_in_a_row() {
    for levels in [vec![2, 2, 2], vec![6, 3, 4, 6, 6, 5, 2, 2, 3], vec![3, 1], vec![4]] {
        let rows = pairwise(&levels);
        for second in 0..levels.len() {
            for first in 0..second {
                let met: BTreeSet<_> = rows.iter().map(|row| (row[first], row[second])).collect();
                assert_eq!(met.len(), levels[first] * levels[second], "factors {first} and {second}");
            }
        }
        assert!(rows.iter().all(|row| row.iter().zip(&levels).all(|(level, of)| level < of)));
    }
}
