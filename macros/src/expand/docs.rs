//! Generated documentation.

use super::Names;
use proc_macro2::TokenStream;
use quote::quote;
use seamline_codegen::parse::{OutputSyntax, ParamSyntax, Parsed};
use seamline_codegen::tensor::{Access, Dim};
use seamline_codegen::{DType, Elem, Fixed, Role};
use std::fmt::Write;
use syn::ext::IdentExt;

/// What follows the user's own words on the pattern's type.
pub(super) fn pattern(parsed: &Parsed, names: &Names) -> TokenStream {
    let fixed = &parsed.options.fixed;
    let mut text = String::new();
    let _ = writeln!(text, "\n\nA fused kernel; its arguments are [`{}`].\n", names.bundle);
    let _ = writeln!(text, "| argument | | shape | dtype |\n|---|---|---|---|");
    for (i, param) in parsed.signature.params.iter().enumerate() {
        let Some(role) = param.role else { continue };
        let in_place = parsed.outputs.iter().any(|o| o.in_place.is_some_and(|p| p.0 as usize == i));
        let direction = match (in_place, param.optional) {
            (true, _) => "in place",
            (false, true) => "in, optional",
            (false, false) => "in",
        };
        let name = param.ident.unraw();
        let _ = writeln!(
            text,
            "| `{name}` | {direction} | `{}` | {} |",
            role.tensor().shape(),
            dtype(role, fixed)
        );
    }
    for output in parsed.outputs.iter().filter(|o| o.in_place.is_none()) {
        let role = output.role;
        let name = output.ident.unraw();
        let _ = writeln!(text, "| `{name}` | out | `{}` | {} |", role.tensor().shape(), dtype(role, fixed));
    }
    let meanings = meanings(parsed);
    let dims = dims(fixed);
    let _ = match dims.is_empty() {
        true => writeln!(text, "\n{meanings}. All but T is bound at `prepare`."),
        false => writeln!(text, "\n{meanings}. Fixed: {dims}. The rest, but T, is bound at `prepare`."),
    };
    quote!(#[doc = #text])
}

/// What the letters of the shapes stand for.
fn meanings(parsed: &Parsed) -> String {
    let has = |dim| parsed.signature.params.iter().filter_map(|p| p.role).any(|r| r.tensor().has(dim));
    let letters = [
        (true, "T is the launch's tokens"),
        (true, "H `hidden`"),
        (has(Dim::TopK), "K `top_k`"),
        (has(Dim::Rows), "P the rows there are"),
    ];
    letters.into_iter().filter(|(is, _)| *is).map(|(_, text)| text).collect::<Vec<_>>().join(", ")
}

/// The docs of a parameter's field.
pub(super) fn param(param: &ParamSyntax, in_place: bool, fixed: &Fixed) -> String {
    let Some(role) = param.role else { return "Unknown.".to_owned() };
    let tensor = role.tensor();
    let mut text = match tensor.access {
        Access::Value => "One f32, by value.".to_owned(),
        _ => format!("`{}`: `{}` {}.", role.type_name(), tensor.shape(), dtype(role, fixed)),
    };
    if !role.note().is_empty() {
        let _ = write!(text, " {}", role.note());
    }
    if in_place {
        text += " Read, then overwritten.";
    } else if param.optional {
        let _ = write!(text, " `None`: {}.", role.absent());
    }
    text
}

/// The docs of an output's field.
pub(super) fn output(output: &OutputSyntax, fixed: &Fixed) -> String {
    let tensor = output.role.tensor();
    format!("Written: `{}` {}.", tensor.shape(), dtype(output.role, fixed))
}

fn dtype(role: Role, fixed: &Fixed) -> String {
    match (role.tensor().elem, fixed.dtype) {
        (Elem::Fixed(d), _) | (Elem::Pattern, Some(d)) => d.to_string(),
        (Elem::Pattern, None) => "the pattern's dtype".to_owned(),
    }
}

/// `hidden = 7168, dtype = bf16`.
fn dims(fixed: &Fixed) -> String {
    let number = |name, n: Option<u32>| n.map(|n| format!("`{name} = {n}`"));
    let named = |name, d: Option<DType>| d.map(|d| format!("`{name} = {d}`"));
    let all = [
        number("hidden", fixed.hidden),
        number("top_k", fixed.top_k),
        number("ranks", fixed.ranks),
        named("dtype", fixed.dtype),
        named("wire", fixed.wire),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
