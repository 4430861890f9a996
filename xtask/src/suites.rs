//! Reads what `cargo test` prints: one suite per test binary, and what each counted.

use crate::report::Counts;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a test prints, `SKIPPED: why`, when it cannot run here. `--show-output` brings it out.
const SKIPPED: &str = "SKIPPED: ";

/// One test binary, or the doc tests of one crate.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Suite {
    pub name: String,
    pub counts: Counts,
    pub time: Duration,
    /// Why tests were skipped, and which.
    pub skipped: BTreeMap<String, BTreeSet<String>>,
    /// All it printed.
    pub text: String,
    /// The test whose output comes.
    test: String,
    ended: bool,
}

/// Follows the output line by line.
#[derive(Debug, Default)]
pub struct Suites {
    current: Option<Suite>,
    /// What came before the first suite: the build.
    pub build: String,
}

impl Suites {
    /// Takes a line in; answers the suite that it ends, if it does.
    pub fn line(&mut self, line: &str) -> Option<Suite> {
        if let Some(name) = suite_name(line) {
            let ended = self.finish();
            self.current = Some(Suite { name, ..Suite::default() });
            return ended;
        }
        match &mut self.current {
            None => {
                self.build += line;
                self.build.push('\n');
            }
            Some(suite) => suite.line(line),
        }
        None
    }

    /// Ends the last suite.
    pub fn finish(&mut self) -> Option<Suite> {
        self.current.take().map(Suite::close)
    }
}

impl Suite {
    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
        if let Some(test) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.test = test.to_owned();
        }
        if let Some(why) = line.strip_prefix(SKIPPED) {
            self.skipped.entry(why.to_owned()).or_default().insert(self.test.clone());
        }
        if let Some(result) = line.strip_prefix("test result: ") {
            self.ended = true;
            self.counts += Counts {
                passed: number_before(result, " passed"),
                failed: number_before(result, " failed"),
                skipped: number_before(result, " ignored"),
            };
            let seconds =
                result.rsplit_once("finished in ").and_then(|(_, time)| time.strip_suffix('s')?.parse().ok());
            self.time += Duration::from_secs_f64(seconds.unwrap_or(0.0));
        }
    }

    fn close(mut self) -> Suite {
        // libtest takes a test that returned early for one that passed.
        let tests: BTreeSet<_> = self.skipped.values().flatten().collect();
        let skipped = self.counts.passed.min(tests.len() as u64);
        self.counts.passed -= skipped;
        self.counts.skipped += skipped;
        if !self.ended {
            // Killed before it could say how it went.
            self.counts += Counts::FAILED;
        }
        self
    }
}

/// `     Running tests/sim.rs (target/debug/deps/sim-…)`, `   Doc-tests seamline`.
fn suite_name(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(of) = line.strip_prefix("Doc-tests ") {
        return Some(format!("doc tests, {}", of.replace('_', "-")));
    }
    let (source, binary) = line.strip_prefix("Running ")?.strip_suffix(')')?.split_once(" (")?;
    let file = binary.rsplit(['/', '\\']).next()?;
    let of = file.rsplit_once('-').map_or(file, |(name, _hash)| name).replace('_', "-");
    Some(match source.strip_prefix("unittests ") {
        Some("src/main.rs") => format!("unit tests, {of} (command)"),
        Some(_) => format!("unit tests, {of}"),
        None => source.to_owned(),
    })
}

fn number_before(text: &str, word: &str) -> u64 {
    let before = text.find(word).map_or("", |at| &text[..at]);
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suites(text: &str) -> Vec<Suite> {
        let mut suites = Suites::default();
        let mut all: Vec<Suite> = text.lines().filter_map(|line| suites.line(line)).collect();
        all.extend(suites.finish());
        all
    }

    #[test]
    fn counts_of_a_suite_are_read() {
        let all = suites(
            "   Compiling x\n     Running unittests src/lib.rs (target/debug/deps/seamline_codegen-0a1b)\n\
             test a ... ok\ntest result: FAILED. 11 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.50s\n\
             \x20    Running tests/gpu.rs (target/debug/deps/gpu-0a1b)\n\
             successes:\n---- runs_on_gpu stdout ----\nSKIPPED: no driver\nSKIPPED: no driver\n\
             ---- replays stdout ----\nSKIPPED: no driver\n\
             test result: ok. 3 passed; 0 failed; 0 ignored; finished in 0.00s\n",
        );
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].name, "unit tests, seamline-codegen");
        assert_eq!(all[0].counts, Counts { passed: 11, failed: 2, skipped: 1 });
        assert_eq!(all[0].time, Duration::from_millis(1500));
        assert_eq!(all[1].name, "tests/gpu.rs");
        assert_eq!(all[1].counts, Counts { passed: 1, failed: 0, skipped: 2 });
        assert_eq!(all[1].skipped.keys().collect::<Vec<_>>(), ["no driver"]);
    }

    #[test]
    fn a_suite_that_was_killed_has_failed() {
        let all = suites("     Running tests/sim.rs (target/debug/deps/sim-0a1b)\ntest a ... ok\n");
        assert_eq!(all[0].counts, Counts::FAILED);
    }

    #[test]
    fn several_results_of_doc_tests_add_up() {
        let all = suites(
            "   Doc-tests seamline\ntest result: ok. 2 passed; 0 failed; 0 ignored; finished in 0.10s\n\
             test result: ok. 1 passed; 0 failed; 0 ignored; finished in 0.20s\n",
        );
        assert_eq!(all[0].counts, Counts { passed: 3, failed: 0, skipped: 0 });
        assert_eq!(all[0].name, "doc tests, seamline");
    }
}
