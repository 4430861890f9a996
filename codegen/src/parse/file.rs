//! Every pattern of a source file, for the command: no build of the user's crate.

use super::{Diagnostic, Reported};
use crate::Graph;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use std::fmt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, Item, ItemMod as Module, Meta};

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
        writeln!(f, "{line}:{column}: {diagnostic}")?;
        writeln!(f, "{line} | {text}")?;
        write!(f, "{:margin$} | {:indent$}{}", "", "", "^".repeat(*width), indent = column - 1)
    }
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

/// Every fn under `#[fused_pattern]` in `source`, in modules too, in order.
///
/// # Errors
/// Everything that is wrong with any of them, or that `source` is not Rust.
pub fn parse_file(source: &str) -> Result<Vec<Graph>, FileError> {
    let lines = source.lines().collect::<Vec<_>>();
    let file = match syn::parse_file(source) {
        Ok(file) => file,
        Err(error) => {
            return Err(FileError(vec![locate(&lines, &Diagnostic::syntax(&error, &TokenStream::new()))]));
        }
    };
    let mut found = Vec::new();
    patterns(&file.items, &mut found);
    let mut graphs = Vec::new();
    let mut errors = Vec::new();
    for (attr, item) in found {
        match super::parse(attr, item) {
            Ok(parsed) if parsed.diagnostics.is_empty() => graphs.push(parsed.graph),
            Ok(parsed) => errors.extend(parsed.diagnostics),
            Err(reported) => errors.push(reported),
        }
    }
    if errors.is_empty() {
        return Ok(graphs);
    }
    let mut errors = errors.iter().map(|e| locate(&lines, e)).collect::<Vec<_>>();
    errors.sort_by_key(|e| (e.line, e.column));
    Err(FileError(errors))
}

/// Collects attribute and item of every pattern.
fn patterns(items: &[Item], found: &mut Vec<(TokenStream, TokenStream)>) {
    for item in items {
        match item {
            Item::Mod(Module { content: Some((_, items)), .. }) => patterns(items, found),
            _ => found.extend(Attributed::parse.parse2(item.to_token_stream()).ok().and_then(pattern)),
        }
    }
}

/// Any item: also one that is not a fn, for the message that it should be.
struct Attributed {
    attrs: Vec<Attribute>,
    rest: TokenStream,
}

impl Parse for Attributed {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        Ok(Attributed { attrs: input.call(Attribute::parse_outer)?, rest: input.parse()? })
    }
}

fn pattern(Attributed { mut attrs, rest }: Attributed) -> Option<(TokenStream, TokenStream)> {
    let ours = |a: &Attribute| a.path().segments.last().is_some_and(|s| s.ident == "fused_pattern");
    let at = attrs.iter().position(ours)?;
    let attr = match attrs.remove(at).meta {
        Meta::List(list) => list.tokens,
        // `#[fused_pattern = …]` does not reach a macro either: the compiler refuses it.
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    };
    Some((attr, quote!(#(#attrs)* #rest)))
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
