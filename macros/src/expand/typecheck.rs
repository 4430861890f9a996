//! The body once more, as a fn that is never called: for the compiler's own type errors, and for hover and
//! go-to-definition in editors.

use super::{Names, levels};
use proc_macro2::{Group, Literal, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use seamline_codegen::parse::Parsed;
use syn::{Expr, Lit, Stmt};

pub(super) fn typecheck(parsed: &Parsed, names: &Names) -> TokenStream {
    let levels = levels(parsed);
    let syntax = &parsed.syntax;
    let name = &syntax.ident;
    // What was reported must not be reported again by the compiler; an editor still wants to look inside. What is not reported
    // is named once, so that no lint calls it unused.
    let (shown, body, used) = match parsed.diagnostics.is_empty() {
        true => {
            (None, f32_literals(statements(&parsed.statements, &names.krate)), Some(quote!(let _ = #name;)))
        }
        false => (Some(quote!(#[cfg(rust_analyzer)])), parsed.body.clone(), None),
    };
    quote! {
        #(#levels)*
        #[allow(unexpected_cfgs, forbidden_lint_groups)]
        const _: () = {
            #shown
            #[allow(warnings, clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]
            #syntax { #body }
            #used
        };
    }
}

/// The body, with a conversion where a computed value (f32) meets a declared dtype: in an assignment and in
/// the result.
fn statements(statements: &[Stmt], krate: &TokenStream) -> TokenStream {
    let store = |e: &Expr| quote!(#krate::dsl::store(#e));
    let mut out = TokenStream::new();
    for statement in statements {
        match statement {
            Stmt::Expr(Expr::Assign(assign), semi) => {
                let (left, right) = (&assign.left, store(&assign.right));
                out.extend(quote!(#left = #right #semi));
            }
            Stmt::Expr(result, None) => out.extend(returned(result, &store)),
            other => other.to_tokens(&mut out),
        }
    }
    out
}

fn returned(result: &Expr, store: &impl Fn(&Expr) -> TokenStream) -> TokenStream {
    match result {
        Expr::Paren(inner) => returned(&inner.expr, store),
        Expr::Tuple(tuple) => {
            let elements = tuple.elems.iter().map(store);
            quote!((#(#elements,)*))
        }
        one => store(one),
    }
}

/// Gives every number the suffix that says what it is in a pattern.
fn f32_literals(tokens: TokenStream) -> TokenStream {
    let suffixed = |token: TokenTree| match token {
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), f32_literals(group.stream()));
            inner.set_span(group.span());
            TokenTree::Group(inner)
        }
        TokenTree::Literal(literal) => match f32_literal(&literal) {
            Some(mut number) => {
                number.set_span(literal.span());
                TokenTree::Literal(number)
            }
            None => TokenTree::Literal(literal),
        },
        other => other,
    };
    tokens.into_iter().map(suffixed).collect()
}

/// The number with its suffix; `None` if it is none, or has one.
fn f32_literal(literal: &Literal) -> Option<Literal> {
    let (digits, suffix) = match Lit::new(literal.clone()) {
        Lit::Float(number) => (number.base10_digits().to_owned(), number.suffix().to_owned()),
        Lit::Int(number) => (number.base10_digits().to_owned(), number.suffix().to_owned()),
        _ => return None,
    };
    suffix.is_empty().then(|| format!("{}f32", digits.trim_end_matches('.')).parse().ok()).flatten()
}
