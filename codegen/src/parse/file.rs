//! Every pattern of a source file, for the command: no build of the user's crate.

use super::scan::{Inside, Item, patterns};
use super::{Diagnostic, Place, Reported};
use crate::Graph;
use proc_macro2::{LexError, TokenStream};
use std::fmt;

/// What is in a source file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SourceFile {
    /// Every fn under `#[fused_pattern]`, in order.
    pub patterns: Vec<Found>,
    /// The lines, counted from 1, of those that are not among them: what a macro makes of its arguments is not known.
    pub in_macros: Vec<usize>,
}

/// A pattern of a source file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// The modules and fns that it is in, and its name: `module::name`.
    pub path: String,
    /// The line of its attribute, counted from 1.
    pub line: usize,
    /// The pattern.
    pub graph: Graph,
}

/// A message at a line and column of a source file, both counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
    /// How many characters of the line it is about.
    pub width: usize,
    /// The line's text.
    pub text: String,
    /// The message.
    pub diagnostic: Diagnostic,
}

/// Everything that is wrong in a source file, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError(pub Vec<Located>);

impl std::error::Error for FileError {}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Located { line, column, width, text, diagnostic } = self;
        let margin = line.to_string().len();
        let (text, before, width) = excerpt(text, column - 1, *width);
        writeln!(f, "{line}:{column}: {diagnostic}")?;
        writeln!(f, "{line} | {text}")?;
        write!(f, "{:margin$} | {:before$}{}", "", "", "^".repeat(width))
    }
}

/// As much of a line as a terminal shows, with what is in front of its `width` characters at `start`, and how many of those are
/// in it.
fn excerpt(text: &str, start: usize, width: usize) -> (String, usize, usize) {
    const LINE: usize = 160;
    const BEFORE: usize = 40;
    let length = text.chars().count();
    if length <= LINE {
        return (text.to_owned(), start, width);
    }
    let first = start.saturating_sub(BEFORE);
    let shown = text.chars().skip(first).take(LINE).collect::<String>();
    let (left, right) = (if first > 0 { "…" } else { "" }, if first + LINE < length { "…" } else { "" });
    let before = start - first + left.chars().count();
    (format!("{left}{shown}{right}"), before, width.min(first + LINE - start))
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, located) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{located}")?;
        }
        Ok(())
    }
}

impl SourceFile {
    /// Finds and parses the patterns of `source`: in modules, in fns and in blocks. Nothing else of it is looked at, and no
    /// `cfg` is.
    ///
    /// # Errors
    /// Everything that is wrong with any of them, or that the brackets of `source` do not match.
    pub fn parse(source: &str) -> Result<SourceFile, FileError> {
        let lines = source.lines().collect::<Vec<_>>();
        let tokens = without_shebang(source).parse::<TokenStream>();
        let tokens = tokens.map_err(|error| FileError(vec![locate(&lines, &unreadable(&error))]))?;
        let mut file = SourceFile { patterns: Vec::new(), in_macros: Vec::new() };
        let mut errors = Vec::new();
        for Item { path, place, attr, tokens, inside } in patterns(tokens) {
            let line = place.start.start().line;
            match inside {
                Inside::Macro => file.in_macros.push(line),
                Inside::Impl => errors.push(Diagnostic::InImpl {}.at(place)),
                Inside::Free => match super::parse(attr, tokens) {
                    Ok(parsed) if parsed.diagnostics.is_empty() => {
                        let path = path.to_string();
                        file.patterns.push(Found { path, line, graph: parsed.graph });
                    }
                    Ok(parsed) => errors.extend(parsed.diagnostics),
                    Err(reported) => errors.push(reported),
                },
            }
        }
        if errors.is_empty() {
            return Ok(file);
        }
        let mut errors = errors.iter().map(|e| locate(&lines, e)).collect::<Vec<_>>();
        errors.sort_by_key(|e| (e.line, e.column));
        Err(FileError(errors))
    }
}

/// The patterns of [`SourceFile::parse`].
///
/// # Errors
/// As there.
pub fn parse_file(source: &str) -> Result<Vec<Graph>, FileError> {
    Ok(SourceFile::parse(source)?.patterns.into_iter().map(|found| found.graph).collect())
}

/// `#!/usr/bin/env …` is not of the language; `#![…]` is. The line stays, so that others keep their numbers.
fn without_shebang(source: &str) -> &str {
    let text = source.trim_start_matches('\u{feff}');
    match text.strip_prefix("#!") {
        Some(rest) if !rest.trim_start().starts_with('[') => text.find('\n').map_or("", |end| &text[end..]),
        _ => source,
    }
}

fn unreadable(error: &LexError) -> Reported {
    let message =
        "this is not Rust: a bracket or quote without its other half, or a character that means nothing";
    let place = Place { start: error.span(), end: error.span() };
    Diagnostic::Syntax { message: message.to_owned() }.at(place)
}

fn locate(lines: &[&str], Reported { place, diagnostic }: &Reported) -> Located {
    let (start, end) = (place.start.start(), place.end.end());
    let text = lines.get(start.line.saturating_sub(1)).unwrap_or(&"").trim_end().to_owned();
    let last = if end.line == start.line { end.column } else { text.chars().count() };
    Located {
        line: start.line,
        column: start.column + 1,
        width: last.saturating_sub(start.column).max(1),
        text,
        diagnostic: diagnostic.clone(),
    }
}
