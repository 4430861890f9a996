//! What a compiler complains of, with the lines that it points at.

use crate::source;

/// The first errors, each with the lines of `text` around the place that it names.
pub(super) fn excerpt(messages: &str, text: &str) -> String {
    const ERRORS: usize = 3;
    // What the driver says when the linker fails is not why.
    let linking = messages.lines().any(|l| l.starts_with("collect2:") || l.contains("linker command failed"));
    let errors = messages.lines().filter(|l| !linking && l.contains("error:")).take(ERRORS);
    let shown = errors.map(|message| {
        let place = locate(message, text);
        format!("{message}\n{}", place.map_or(String::new(), |line| source::around(text, line)))
    });
    let shown = shown.collect::<String>();
    match shown.is_empty() {
        // The linker's complaints, or a crash of the compiler.
        true => messages.lines().take(20).collect::<Vec<_>>().join("\n"),
        false => shown,
    }
}

/// The index in `text` of the line that `message` (`file:line:column: error: …`) is about.
fn locate(message: &str, text: &str) -> Option<usize> {
    let (place, _) = message.split_once(": ")?;
    let mut parts = place.rsplitn(3, ':');
    let (_column, line, file) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
    source::index(text, file, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_the_lines_around_it() {
        let text = "#line 1 \"a.cuh\"\none\ntwo\n#line 1 \"b.cuh\"\nthree\nfour\nfive\n";
        let shown = excerpt("b.cuh: In function f:\nb.cuh:2:7: error: no such thing\nb.cuh:2: note: x", text);
        assert_eq!(
            shown,
            "b.cuh:2:7: error: no such thing\n  | #line 1 \"b.cuh\"\n  | three\n  > four\n  | five\n"
        );
    }

    #[test]
    fn a_linkers_reason_is_shown() {
        for log in [
            "/usr/bin/ld: cannot find -lnone\ncollect2: error: ld returned 1 exit status",
            "ld.lld: error: undefined symbol: f\n>>> referenced by kernel.cpp\n\
             clang++: error: linker command failed with exit code 1",
        ] {
            assert_eq!(excerpt(log, ""), log);
        }
        assert_eq!(excerpt("ld: cannot find -lm\n", ""), "ld: cannot find -lm");
    }
}
