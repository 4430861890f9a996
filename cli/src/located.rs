//! Messages with the lines of source that they are about, as a terminal shows them.

use crate::output::visible;
use seamline_codegen::parse::{FileError, Located};
use unicode_width::UnicodeWidthChar;

/// Columns of a line that are shown, and of those in front of what is meant.
const LINE: usize = 160;
const BEFORE: usize = 40;
/// What a tab is shown as: where its stop is depends on the terminal.
const TAB: &str = "    ";

/// All of them, each with its excerpt.
pub fn text(errors: &FileError) -> String {
    errors.0.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn one(Located { line, column, width, text, diagnostic, .. }: &Located) -> String {
    let shown: Vec<(String, usize)> = text.chars().map(show).collect();
    let columns = |shown: &[(String, usize)]| shown.iter().map(|(_, width)| width).sum::<usize>();
    let start = (column - 1).min(shown.len());
    let end = (start + width).min(shown.len());
    // The first and the last character of the line that are shown.
    let (mut first, mut last) = (0, shown.len());
    if columns(&shown) > LINE {
        // A line may be a whole file: each character is looked at once.
        first = start - fitting(shown[..start].iter().rev(), BEFORE);
        last = first + fitting(shown[first..].iter(), LINE);
    }
    let (left, right) = (if first > 0 { "…" } else { "" }, if last < shown.len() { "…" } else { "" });
    let excerpt: String = shown[first..last].iter().map(|(text, _)| text.as_str()).collect();
    let before = " ".repeat(columns(&shown[first..start]) + left.chars().count());
    let carets = "^".repeat(columns(&shown[start..end.min(last).max(start)]).max(1));
    let margin = " ".repeat(line.to_string().len());
    format!("{line}:{column}: {diagnostic}\n{line} | {left}{excerpt}{right}\n{margin} | {before}{carets}")
}

/// How many of the first characters take `columns` columns at most.
fn fitting<'a>(shown: impl Iterator<Item = &'a (String, usize)>, columns: usize) -> usize {
    let mut taken = 0;
    let fits = shown.take_while(|(_, width)| {
        taken += width;
        taken <= columns
    });
    fits.count()
}

/// A character as a terminal may have it, and how many columns that takes.
fn show(c: char) -> (String, usize) {
    let text = match c {
        '\t' => TAB.to_owned(),
        c => visible(c.encode_utf8(&mut [0; 4])).into_owned(),
    };
    let width = text.chars().map(|c| c.width().unwrap_or(0)).sum();
    (text, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use seamline_codegen::parse::SourceFile;

    /// What is shown of the only error of a pattern whose line is `before`, a name that is unknown, and `after`.
    fn shown(before: &str, after: &str) -> (String, String) {
        let source =
            format!("#[fused_pattern]\nfn seam(x: Tokens) -> Tokens {{\n{before}wrong; {after}\n y }}");
        let text = text(&SourceFile::parse(&source).unwrap_err());
        let mut lines = text.lines().skip(1).map(|line| line.split_once("| ").unwrap().1.to_owned());
        (lines.next().unwrap(), lines.next().unwrap())
    }

    #[test]
    fn carets_stand_under_what_is_meant() {
        let (line, carets) = shown("let y = x + ", "");
        assert_eq!((line.as_str(), carets.as_str()), ("let y = x + wrong;", "            ^^^^^"));
        let (line, carets) = shown("\tlet y = x + /*\t*/ ", "");
        assert_eq!(line.find("wrong"), carets.find('^'), "{line}\n{carets}");
        // Wide characters take two columns, and those that combine none.
        let (line, carets) = shown("let y = x + /* 幅 e\u{301} */ ", "");
        assert_eq!(carets.len(), "let y = x + /* ww e */ wrong".len(), "{line}\n{carets}");
    }

    #[test]
    fn a_terminal_obeys_nothing_of_the_line() {
        let (line, carets) = shown("let y = x + /* \u{1b}[2J */ ", "// \u{202e}");
        assert!(line.contains("\\u{1b}[2J") && line.ends_with("// \\u{202e}"), "{line}");
        assert_eq!(line.find("wrong"), carets.find('^'), "{line}\n{carets}");
    }

    #[test]
    fn a_long_line_is_cut_around_what_is_meant() {
        let long = format!("let y = x + /* {} */ ", "幅".repeat(200));
        let (line, carets) = shown(&long, &format!("// {}", "a".repeat(300)));
        assert!(line.starts_with('…') && line.ends_with('…') && line.contains("wrong"), "{line}");
        assert!(carets.ends_with(" ^^^^^") && carets.len() < 60, "{carets}");
        let columns: usize = line.chars().take_while(|c| *c != 'w').filter_map(|c| c.width()).sum();
        assert_eq!(columns, carets.find('^').unwrap());
    }
}
