//! A parsed pattern to the items it generates.

mod bundle;
mod docs;
mod typecheck;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use seamline_codegen::Graph;
use seamline_codegen::parse::{Parsed, constant, parse};

/// The type, its `Pattern`, the bundle, the copy for the compiler, and every error.
pub fn expand(attr: TokenStream, item: TokenStream) -> TokenStream {
    let parsed = match parse(attr, item.clone()) {
        Ok(parsed) => parsed,
        Err(reported) => {
            let error = reported.to_compile_error();
            return quote!(#error #item);
        }
    };
    let errors = parsed.diagnostics.iter().map(|d| d.to_compile_error());
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
    let (attrs, vis) = (&parsed.attrs, &parsed.vis);
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
        #(#attrs)*
        #docs
        #[derive(Clone, Copy, Debug)]
        #vis struct #pattern;

        #(#levels)*
        #[automatically_derived]
        impl #krate::__private::Pattern for #pattern {
            const GRAPH: &'static #krate::__private::Graph = #graph;
            type Args<'a> = #bundle<'a>;
        }
    }
}

/// `cfg`s and lint levels, which every generated item takes over.
fn levels(parsed: &Parsed) -> Vec<&syn::Attribute> {
    parsed.attrs.iter().filter(|a| !a.path().is_ident("doc")).collect()
}
