//! Lists on the command line: with commas, with spaces, with both.
//!
//! Clap would take every word behind a list's option for a value, a source file too. So the words that continue a list are
//! joined with commas before clap sees them: those that have the shape of its first value and are no file.

use clap::Command;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What a value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// `17`
    Number,
    /// `hidden=64`
    Assignment,
    /// `sm_90a`
    Word,
}

impl Shape {
    /// The shape of all values in `text`; none of what a file may be called.
    fn of(text: &str) -> Option<Shape> {
        let mut shapes = values(text).map(|value| {
            let is_word = |text: &str| {
                !text.starts_with('-') && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
            };
            match value.split_once('=') {
                Some((name, _)) => is_word(name).then_some(Shape::Assignment),
                None if value.bytes().all(|b| b.is_ascii_digit()) => Some(Shape::Number),
                None => is_word(value).then_some(Shape::Word),
            }
        });
        let first = shapes.next()??;
        shapes.all(|shape| shape == Some(first)).then_some(first)
    }
}

/// The values in a word, which may be quoted with its spaces.
fn values(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ']).filter(|value| !value.is_empty())
}

/// The arguments of `command`, the first of which is its own name, with each list as one value.
pub fn joined(command: &Command, arguments: Vec<OsString>) -> Vec<OsString> {
    let mut joined = Vec::with_capacity(arguments.len());
    let mut options = Vec::new();
    let mut words = arguments.into_iter().peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            joined.push(word);
            break;
        }
        if options.is_empty() {
            let called = command.get_subcommands().find(|sub| word == sub.get_name());
            options = called.map(lists).unwrap_or_default();
        }
        let Some((option, attached)) = word.to_str().and_then(|word| option(&options, word)) else {
            joined.push(word);
            continue;
        };
        let first = match attached {
            Some(value) => Some(OsString::from(value)),
            None => words.next_if(|next| !is_option(next)),
        };
        let Some(first) = first else {
            joined.push(word);
            continue;
        };
        let mut list = first.clone();
        if let Some(shape) = first.to_str().and_then(Shape::of) {
            while let Some(next) = words.next_if(|next| continues(shape, next)) {
                list.push(",");
                list.push(next);
            }
        }
        joined.push(option.into());
        joined.push(match list.to_str() {
            Some(list) => values(list).collect::<Vec<_>>().join(",").into(),
            None => list,
        });
    }
    joined.extend(words);
    joined
}

fn is_option(word: &OsStr) -> bool {
    word.to_string_lossy().starts_with('-')
}

fn continues(shape: Shape, word: &OsStr) -> bool {
    word.to_str().is_some_and(|word| match Shape::of(word) {
        Some(found) => found == shape && !(shape == Shape::Word && Path::new(word).exists()),
        // A comma on its own.
        None => !word.is_empty() && word.chars().all(|c| c == ','),
    })
}

/// The options of a command that take lists: `--tokens`, `-t`.
fn lists(command: &Command) -> Vec<String> {
    let lists = command.get_arguments().filter(|arg| arg.get_value_delimiter() == Some(','));
    let names = lists.flat_map(|arg| {
        let long = arg.get_long().map(|long| format!("--{long}"));
        long.into_iter().chain(arg.get_short().map(|short| format!("-{short}")))
    });
    names.collect()
}

/// The one of `options` that `word` is, and the value that is attached to it: `--tokens=1`, `-t1`.
fn option<'a>(options: &'a [String], word: &str) -> Option<(&'a String, Option<String>)> {
    options.iter().find_map(|option| {
        let rest = word.strip_prefix(option.as_str())?;
        match option.starts_with("--") {
            _ if rest.is_empty() => Some((option, None)),
            true => Some((option, Some(rest.strip_prefix('=')?.to_owned()))),
            false => Some((option, Some(rest.strip_prefix('=').unwrap_or(rest).to_owned()))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction};

    fn join(line: &str) -> String {
        let list =
            |name: &'static str, short: char| Arg::new(name).long(name).short(short).value_delimiter(',');
        let one = Arg::new("ranks").long("ranks").short('n');
        let json = Arg::new("json").long("json").action(ArgAction::SetTrue);
        let check =
            Command::new("check").args([list("tokens", 't'), list("set", 's'), list("arch", 'a'), one, json]);
        let command = Command::new("seamline").subcommand(check);
        let words = line.split(' ').map(OsString::from).collect();
        let joined = joined(&command, words);
        joined.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn commas_and_spaces_are_alike_and_a_file_is_no_value() {
        for (line, expected) in [
            ("seamline check -t 1 8192 f.rs", "seamline check -t 1,8192 f.rs"),
            ("seamline check -t 1, 2 , 3 --json", "seamline check -t 1,2,3 --json"),
            ("seamline check -t1 2 --tokens=3 4", "seamline check -t 1,2 --tokens 3,4"),
            ("seamline check --set a=1 b=2 f.rs", "seamline check --set a=1,b=2 f.rs"),
            ("seamline check --set a=1,b=2 my_seams", "seamline check --set a=1,b=2 my_seams"),
            (
                "seamline check --arch sm_90a sm_100a a/b -t 1",
                "seamline check --arch sm_90a,sm_100a a/b -t 1",
            ),
            // A word that is a file is one.
            ("seamline check --arch sm_90a src", "seamline check --arch sm_90a src"),
            // What is no list takes one value, and what is wrong is left to clap.
            ("seamline check -n 1 8", "seamline check -n 1 8"),
            ("seamline check -t --json", "seamline check -t --json"),
            ("seamline check -t", "seamline check -t"),
            ("seamline check -t 1 -- 2", "seamline check -t 1 -- 2"),
            ("seamline list f.rs", "seamline list f.rs"),
        ] {
            assert_eq!(join(line), expected, "{line}");
        }
    }
}
