//! Lines of a generated source, which is several files with `#line` between them.

/// The index in `text` of line `line` of `file`, counted from its `#line 1`; without one, from the beginning.
pub(crate) fn index(text: &str, file: &str, line: usize) -> Option<usize> {
    let named =
        |l: &str| l.strip_prefix("#line 1 \"").and_then(|l| l.trim_end().strip_suffix('"')) == Some(file);
    let start = text.lines().position(named).map_or(0, |i| i + 1);
    (start + line).checked_sub(1)
}

/// What is written there.
pub(crate) fn line<'a>(text: &'a str, file: &str, line: usize) -> Option<&'a str> {
    text.lines().nth(index(text, file, line)?).map(str::trim)
}

/// The lines around the one with this index, which is marked.
pub(crate) fn around(text: &str, index: usize) -> String {
    const AROUND: usize = 2;
    let from = index.saturating_sub(AROUND);
    let lines = text.lines().enumerate().skip(from).take(index + AROUND + 1 - from);
    lines.map(|(i, l)| format!("  {} {l}\n", if i == index { ">" } else { "|" })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_in_their_file() {
        let text = "zero\n#line 1 \"a.cuh\"\none\n  two\n#line 1 \"b.cuh\"\nthree\n";
        assert_eq!(line(text, "a.cuh", 2), Some("two"));
        assert_eq!(line(text, "b.cuh", 1), Some("three"));
        assert_eq!(line(text, "kernel.cpp", 1), Some("zero"));
        assert_eq!(line(text, "b.cuh", 9), None);
        assert_eq!(index(text, "none", 0), None);
    }
}
