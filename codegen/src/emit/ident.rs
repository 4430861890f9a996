//! C++ identifiers.

/// `name` as part of a C++ identifier: ASCII, whatever Rust allowed, and no two names alike.
pub(super) fn ascii(name: &str) -> String {
    let name = name.strip_prefix("r#").unwrap_or(name);
    let escape = |(at, c): (usize, char)| match c.is_ascii_alphanumeric() || c == '_' {
        true if !is_escape(&name[at..]) => c.to_string(),
        _ => format!("_u{:x}_", c as u32),
    };
    name.char_indices().map(escape).collect()
}

/// Whether it begins as what stands for another character.
fn is_escape(name: &str) -> bool {
    let digits = name.strip_prefix("_u").and_then(|rest| rest.split_once('_')).map(|(digits, _)| digits);
    digits.is_some_and(|d| !d.is_empty() && d.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')))
}

#[cfg(test)]
mod tests {
    use super::ascii;

    #[test]
    fn names_stay_apart() {
        assert_eq!(
            ["gemm2_out", "r#type", "_u", "x_under_y"].map(ascii),
            ["gemm2_out", "type", "_u", "x_under_y"]
        );
        assert_eq!(["é", "_ue9_", "_u5f_ue9_"].map(ascii), ["_ue9_", "_u5f_ue9_", "_u5f_u5f_u5f_ue9_"]);
    }
}
