//! A parsed pattern to the items it generates.

mod bundle;
mod docs;
mod typecheck;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use seamline_codegen::Graph;
use seamline_codegen::parse::{Diagnostic, Parsed, constant, is_fn, parse};
use syn::{Meta, spanned::Spanned};

/// The type, its `Pattern`, the bundle, the copy for the compiler, and every error.
pub fn expand(attr: TokenStream, item: TokenStream) -> TokenStream {
    let parsed = match parse(attr, item.clone()) {
        Ok(parsed) => parsed,
        Err(reported) => {
            let error = reported.to_compile_error();
            // Whatever else it is, it is used elsewhere. The compiler would have more to say of a fn.
            let other = (!is_fn(&item)).then_some(item);
            return quote!(#error #other);
        }
    };
    let errors = parsed.diagnostics.iter().map(|d| d.to_compile_error());
    // In an `impl`, where no item may stand.
    if parsed.diagnostics.iter().any(|d| matches!(d.diagnostic, Diagnostic::Receiver {})) {
        return quote!(#(#errors)*);
    }
    let names = Names::new(&parsed);
    let pattern = pattern(&parsed, &names);
    let bundle = bundle::bundle(&parsed, &names);
    let typecheck = typecheck::typecheck(&parsed, &names);
    quote!(#(#errors)* #pattern #bundle #typecheck)
}

/// What the generated items are called.
struct Names {
    /// The fn's name in CamelCase, at the fn's name.
    pattern: Ident,
    /// `…Args`.
    bundle: Ident,
    /// The path of the seamline crate.
    krate: TokenStream,
}

impl Names {
    fn new(parsed: &Parsed) -> Names {
        let pattern = parsed.type_name.clone();
        let krate = match &parsed.options.crate_path {
            Some(path) => quote!(#path),
            None => quote!(::seamline),
        };
        Names { bundle: format_ident!("{pattern}Args"), pattern, krate }
    }
}

fn pattern(parsed: &Parsed, names: &Names) -> TokenStream {
    let Names { pattern, bundle, krate } = names;
    let vis = &parsed.vis;
    let words = parsed.attrs.iter().filter(|a| a.path().is_ident("doc"));
    let levels = levels(parsed);
    let docs = docs::pattern(parsed, names);
    // With errors the graph may be inconsistent, and nothing may run it.
    let graph = match parsed.diagnostics.is_empty() {
        true => parsed.graph.clone(),
        false => Graph {
            params: [].as_slice().into(),
            nodes: [].as_slice().into(),
            outputs: [].as_slice().into(),
            ..parsed.graph.clone()
        },
    };
    let graph = constant(&graph, &quote!(#krate::__private));
    quote! {
        #(#words)*
        #docs
        #(#levels)*
        #[derive(Clone, Copy, Debug)]
        #vis struct #pattern;

        #(#levels)*
        #[automatically_derived]
        impl #krate::__private::Definition for #pattern {
            const GRAPH: &'static #krate::__private::Graph = #graph;
            type Args<'a> = #bundle<'a>;
        }
    }
}

/// `#[doc(hidden)]`, which hides both types.
fn hidden(parsed: &Parsed) -> Option<&syn::Attribute> {
    parsed.attrs.iter().find(|a| match &a.meta {
        Meta::List(list) => list.path.is_ident("doc") && list.tokens.to_string() == "hidden",
        _ => false,
    })
}

/// `cfg`s and lint levels, which every generated item takes over. Of several items a lint that is expected may find
/// fault with one alone, so it is allowed on all.
fn levels(parsed: &Parsed) -> Vec<syn::Attribute> {
    let allowed = |attribute: &syn::Attribute| {
        let mut attribute = attribute.clone();
        if let Meta::List(list) = &mut attribute.meta
            && list.path.is_ident("expect")
        {
            list.path = Ident::new("allow", list.path.span()).into();
        }
        attribute
    };
    parsed.attrs.iter().filter(|a| !a.path().is_ident("doc")).map(allowed).collect()
}
