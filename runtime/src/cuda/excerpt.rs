//! A compiler's errors with the generated lines around them.

use std::fmt::Write;

/// Errors that are shown; the others rarely say more.
const MOST: usize = 5;
/// Lines before and after.
const AROUND: usize = 2;

/// The errors in `log`, each with its lines of `source`. Positions are those that the source's `#line`
/// directives give.
pub(super) fn excerpt(source: &str, log: &str) -> String {
    let errors =
        log.lines().filter(|line| line.contains("error")).filter_map(|line| Some((line, position(line)?)));
    let mut text = String::new();
    let mut count = 0;
    for (message, (file, number)) in errors {
        count += 1;
        if count > MOST {
            continue;
        }
        let _ = writeln!(text, "{message}");
        let lines = file_lines(source, file);
        let from = number.saturating_sub(AROUND + 1);
        for (i, line) in lines.iter().enumerate().skip(from).take(2 * AROUND + 1) {
            let mark = if i + 1 == number { '>' } else { ' ' };
            let _ = writeln!(text, "{mark} {:>4} | {line}", i + 1);
        }
    }
    match count {
        // Nothing with a position: all that there is.
        0 => log.trim().to_owned(),
        1..=MOST => text,
        _ => text + &format!("and {} more", count - MOST),
    }
}

/// `file(12): error: …`
fn position(line: &str) -> Option<(&str, usize)> {
    let end = line.find("): ")?;
    let open = line[..end].rfind('(')?;
    Some((&line[..open], line[open + 1..end].parse().ok()?))
}

/// The lines between the `#line 1` directive of `file` and the next one.
fn file_lines<'a>(source: &'a str, file: &str) -> Vec<&'a str> {
    let directive = format!("#line 1 \"{file}\"");
    let lines = source.lines().skip_while(|line| *line != directive).skip(1);
    lines.take_while(|line| !line.starts_with("#line ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "#line 1 \"a\"\none\ntwo\n#line 1 \"pattern p\"\nx;\ny;\nz;\n";

    #[test]
    fn an_error_is_shown_with_its_lines() {
        let log = "pattern p(2): error: identifier \"y\" is undefined\n\n1 error detected\n";
        let expected =
            "pattern p(2): error: identifier \"y\" is undefined\n     1 | x;\n>    2 | y;\n     3 | z;\n";
        assert_eq!(excerpt(SOURCE, log), expected);
    }

    #[test]
    fn a_log_without_positions_is_shown_whole() {
        assert_eq!(excerpt(SOURCE, "nvrtc: error: out of memory\n"), "nvrtc: error: out of memory");
    }
}
