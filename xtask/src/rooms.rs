//! What is known in one room only.

use std::path::{Path, PathBuf};

/// The Rust files under `folder`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.unwrap().path());
    let below = paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    below.filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}

/// What `text` says to the compiler of a program: no comments, and no tests at its end.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]").enumerate();
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Whoever names a schedule knows what only its file should say.
#[test]
fn no_file_outside_its_room_names_a_schedule() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let room = root.join("codegen/src/schedule");
    let list = std::fs::read_to_string(root.join("codegen/src/schedule.rs")).unwrap();
    let variants = ["Local", "OneShot", "Owner"].map(|name| format!("Schedule::{name}"));
    assert!(variants.iter().all(|v| list.contains(&v["Schedule::".len()..])), "they have other names now");
    let mut named = Vec::new();
    for folder in ["codegen/src", "runtime/src", "sim/src", "cli/src", "src"] {
        for path in sources(&root.join(folder)) {
            if path.starts_with(&room) || path == room.with_extension("rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let found = code(&text).filter(|(_, line)| variants.iter().any(|v| line.contains(v)));
            named.extend(found.map(|(i, line)| format!("{}:{}: {}", path.display(), i + 1, line.trim())));
        }
    }
    assert!(named.is_empty(), "{}", named.join("\n"));
}

#[test]
fn comments_and_tests_are_not_code() {
    let text = "let a;\n// b\n  /// c\nlet d; // e\n#[cfg(test)]\nlet f;";
    assert_eq!(code(text).map(|(i, _)| i).collect::<Vec<_>>(), [0, 3]);
}
