//! Standard output that a pipe may close.

use anyhow::{Context, Result};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::ops::ControlFlow;

/// Writes `text`. A reader that has seen enough (`| head`) is no error.
pub fn print(text: &str) -> Result<()> {
    print_while_read(text).map(|_| ())
}

/// Writes `text`. Breaks where the reader has gone, so that nobody wants more.
pub fn print_while_read(text: &str) -> Result<ControlFlow<()>> {
    let mut out = std::io::stdout().lock();
    let text = if out.is_terminal() { visible(text) } else { text.into() };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}

/// An error with its causes, but for those that it has told itself: what the system said is printed once.
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            text += if text.is_empty() { "" } else { ": " };
            text += &cause;
        }
    }
    text
}

/// `text` without characters that a terminal obeys: a source's may be anyone's.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || is_directional(c);
    match text.contains(is_obeyed) {
        false => Cow::Borrowed(text),
        true => text
            .chars()
            .map(|c| if is_obeyed(c) { c.escape_unicode().to_string() } else { c.to_string() })
            .collect::<String>()
            .into(),
    }
}

/// Whether it changes the order in which others are shown.
fn is_directional(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes `value` as JSON.
pub fn json(value: &impl Serialize) -> Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Tells what is under way, on a terminal only, in place of what it told before; an empty text takes that away.
pub fn progress(text: &str) {
    let mut terminal = std::io::stderr();
    if terminal.is_terminal() {
        // Nothing depends on it.
        let _ = write!(terminal, "\r\x1b[2K{text}").and_then(|()| terminal.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn a_cause_that_is_told_is_not_told_again() {
        let io = std::io::Error::other("no room");
        let told = anyhow::Error::new(io).context("cannot write: no room").context("the demo failed");
        assert_eq!(chain(&told), "the demo failed: cannot write: no room");
        assert_eq!(chain(&anyhow!("b").context("a")), "a: b");
    }

    #[test]
    fn a_terminal_obeys_nothing_that_is_shown() {
        assert_eq!(visible("a\tb\n"), "a\tb\n");
        assert_eq!(visible("\u{1b}[2Ja\r\u{202e}\u{9b}"), "\\u{1b}[2Ja\\u{d}\\u{202e}\\u{9b}");
    }
}
