//! C++ identifiers.

/// `name` as part of a C++ identifier: ASCII, whatever Rust allowed.
pub(super) fn ascii(name: &str) -> String {
    let name = name.strip_prefix("r#").unwrap_or(name);
    name.chars()
        .map(|c| match c.is_ascii_alphanumeric() || c == '_' {
            true => c.to_string(),
            false => format!("_u{:x}_", c as u32),
        })
        .collect()
}
