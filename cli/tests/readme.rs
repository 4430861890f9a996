//! The README's commands and dependencies, as its reader would type them. (Its Rust is the facade's doc tests.)

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).expect("it is in the repository")
}

/// The lines of the README's blocks of a language.
fn lines(language: &str) -> Vec<String> {
    let readme = read("README.md");
    let blocks = readme.split("\n```").skip(1).step_by(2);
    let blocks = blocks.filter_map(|block| block.split_once('\n').filter(|(name, _)| *name == language));
    blocks.flat_map(|(_, text)| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn every_command_is_one_that_runs() {
    const SEAMS: &str = "
        #[fused_pattern(dtype = bf16)]
        fn my_seam(x: Tokens, w: Channels, eps: Scalar) -> Tokens {
            let y = rms_norm(all_reduce(x), w, eps);
            y
        }";
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("readme");
    std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
    std::fs::write(folder.join("my_seams.rs"), SEAMS).expect("the folder for tests can be written");
    let commands = lines("sh");
    let ours = commands.iter().filter_map(|line| line.strip_prefix("cargo run -p seamline-cli -- "));
    let ours: Vec<_> = ours.collect();
    assert_eq!(ours.len(), 4, "{commands:?}");
    for arguments in ours {
        let mut command = Command::new(env!("CARGO_BIN_EXE_seamline"));
        let output = command.current_dir(&folder).args(arguments.split(' ')).output().expect("it runs");
        // Without NVRTC, the doctor and `show` end with 1, and say so.
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let missing = out.contains("NVRTC was not found");
        assert_eq!(output.status.code(), Some(i32::from(missing)), "{arguments}: {out}{err}");
        assert!(err.is_empty() && !out.is_empty(), "{arguments}: {out}{err}");
    }
}

#[test]
fn the_dependencies_are_what_the_workspace_has() {
    let manifest = read("Cargo.toml");
    let value = |key: &str| {
        let line = manifest.lines().find(|line| line.starts_with(&format!("{key} = "))).expect(key);
        line.split('"').nth(1).expect("it is a string").to_owned()
    };
    let lines = lines("toml").join("\n");
    assert!(lines.contains(&format!("seamline = {{ git = \"{}\"", value("repository"))), "{lines}");
    assert!(lines.contains(&format!("cudarc = {{ version = \"{}\"", value("cudarc"))), "{lines}");
    let features = lines.lines().filter_map(|line| line.split_once("features = [")?.1.split_once(']'));
    let features: Vec<_> =
        features.flat_map(|(list, _)| list.split(", ")).map(|f| f.trim_matches('"')).collect();
    assert_eq!(features, ["sim"]);
    for feature in features {
        assert!(manifest.contains(&format!("\n{feature} = [")), "no feature `{feature}`");
    }
}

#[test]
fn every_subcommand_has_a_row() {
    let output = Command::new(env!("CARGO_BIN_EXE_seamline")).arg("--help").output().expect("it runs");
    let help = String::from_utf8(output.stdout).expect("it is UTF-8");
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<_> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"show"), "{help}");
    let readme = read("README.md");
    for name in names.iter().filter(|name| **name != "help") {
        assert!(readme.contains(&format!("\n| `{name}` | ")), "`{name}` is not in the table of commands");
    }
}
