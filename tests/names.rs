//! Each operation is known by name in its own room alone. (Of schedules xtask/src/rooms.rs says the same.)

use seamline_codegen::Operation;
use std::fs;
use std::path::{Path, PathBuf};

/// Code, without comments, doc comments and what stands behind `#[cfg(test)]`.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The Rust files below `folder`, but for those in `rooms` and tests.
fn files(folder: &Path, rooms: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if rooms.iter().any(|room| path.ends_with(room)) || path.ends_with("tests.rs") {
            continue;
        }
        match path.is_dir() {
            true => files(&path, rooms, found),
            false if path.extension().is_some_and(|e| e == "rs") => found.push(path),
            false => {}
        }
    }
}

/// Where one of `words` stands as a whole word, in code outside of `rooms`.
fn strays(words: &[String], rooms: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for krate in ["codegen/src", "runtime/src", "sim/src", "cli/src", "macros/src", "src"] {
        files(&root.join(krate), rooms, &mut found);
    }
    assert!(found.len() > 100, "the sources are read");
    let mut strays = Vec::new();
    for file in found {
        let code = code(&fs::read_to_string(&file).unwrap());
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        // Not the methods of other crates: `hasher.finalize()`.
        let all: Vec<&str> = code.split(|c| !is_word(c) && c != '.').collect();
        for word in words.iter().filter(|word| all.contains(&word.as_str())) {
            strays.push(format!("{} names `{word}`", file.strip_prefix(root).unwrap().display()));
        }
    }
    strays
}

#[test]
fn no_file_outside_its_rooms_names_an_operation() {
    let names = Operation::ALL.iter().flat_map(|o| [o.name().to_owned(), o.variant().to_owned()]);
    let names: Vec<String> = names.collect();
    // The list and the files of the operations; their fns, and what brings those to the user; patterns are written with them.
    let rooms =
        ["codegen/src/op", "codegen/src/op.rs", "src/dsl", "src/dsl.rs", "src/lib.rs", "src/patterns.rs"];
    let strays = strays(&names, &rooms);
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}
