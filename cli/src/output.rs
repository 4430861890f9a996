//! Standard output that a pipe may close.

use anyhow::{Context, Result};
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write};

/// Writes `text`. A reader that has seen enough (`| head`) is no error.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
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
