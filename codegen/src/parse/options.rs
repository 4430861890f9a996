//! What is between the parentheses of `#[fused_pattern(…)]`.

use super::nearest::hint;
use super::{Diagnostic, Place, Reported, name, nesting, ungrouped};
use crate::{DType, Fixed, MAX_HIDDEN, MAX_RANKS, MAX_TOP_K};
use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, Lit, Meta, Token};

const NAMES: [&str; 6] = ["hidden", "top_k", "ranks", "dtype", "wire", "crate"];

/// What the attribute says.
#[derive(Debug, Default)]
pub struct Options {
    /// The dims it fixes.
    pub fixed: Fixed,
    /// `crate = path`: where generated code finds the `seamline` crate.
    pub crate_path: Option<syn::Path>,
    places: Vec<(String, Place)>,
}

impl Options {
    pub(super) fn parse(attr: TokenStream, diagnostics: &mut Vec<Reported>) -> Options {
        let mut options = Options::default();
        let metas = nesting::check(&attr).and_then(|()| {
            let metas = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(attr.clone());
            metas.map_err(|error| Diagnostic::syntax(&error, &attr))
        });
        match metas {
            Ok(metas) => {
                for meta in metas {
                    diagnostics.extend(options.option(&meta).err());
                }
            }
            Err(reported) => diagnostics.push(reported),
        }
        options
    }

    /// Where the option `name` is written.
    pub fn place(&self, name: &str) -> Option<Place> {
        self.places.iter().find(|(n, _)| n == name).map(|(_, place)| *place)
    }

    fn option(&mut self, meta: &Meta) -> Result<(), Reported> {
        let place = Place::of(meta);
        let name = meta.path().get_ident().map(name).unwrap_or_default();
        if !NAMES.contains(&name.as_str()) {
            let name = quote::quote!(#meta).to_string();
            let word = name.split(' ').next().unwrap_or_default().to_owned();
            return Err(Diagnostic::UnknownOption { hint: hint(&word, NAMES), name: word }.at(place));
        }
        if self.place(&name).is_some() {
            return Err(Diagnostic::OptionTwice { name }.at(place));
        }
        self.places.push((name.clone(), place));
        let wrong = |expected: &str| {
            Diagnostic::OptionValue { name: name.clone(), expected: expected.into() }.at(place)
        };
        let dtype = "bf16, f16 or f32";
        let path = "the path of the seamline crate";
        let value = match meta {
            Meta::NameValue(pair) => Some(ungrouped(&pair.value)),
            Meta::Path(_) | Meta::List(_) => None,
        };
        // What fits in a u32 and is out of range is told beside all else that is wrong with the graph.
        let size = |example: u32, max: u32| {
            let expected = || format!("a whole number from 1 to {max}, as in `{name} = {example}`");
            value.and_then(number).ok_or_else(|| wrong(&expected()))
        };
        let fixed = &mut self.fixed;
        match name.as_str() {
            "hidden" => fixed.hidden = Some(size(7168, MAX_HIDDEN)?),
            "top_k" => fixed.top_k = Some(size(8, MAX_TOP_K)?),
            "ranks" => fixed.ranks = Some(size(8, MAX_RANKS)?),
            "dtype" => fixed.dtype = Some(named_dtype(value.ok_or_else(|| wrong(dtype))?)?),
            "wire" => fixed.wire = Some(named_dtype(value.ok_or_else(|| wrong(dtype))?)?),
            _ => match value {
                Some(Expr::Path(p)) => self.crate_path = Some(p.path.clone()),
                _ => return Err(wrong(path)),
            },
        }
        Ok(())
    }
}

fn number(value: &Expr) -> Option<u32> {
    match value {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(int) if int.suffix().is_empty() => int.base10_parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

fn named_dtype(value: &Expr) -> Result<DType, Reported> {
    let name = match value {
        Expr::Path(path) => path.path.get_ident().map(name),
        _ => None,
    };
    let name = name.unwrap_or_else(|| quote::quote!(#value).to_string());
    DType::from_name(&name).ok_or_else(|| Diagnostic::UnknownDType { name }.at(Place::of(value)))
}
