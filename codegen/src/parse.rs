//! Rust source to [`Graph`], with a place in the source for everything that can be wrong.
//!
//! The signature and the body are parsed apart, and every error is collected: a body with an error still
//! has a signature, and so the macro can emit the whole bundle beside the message.
//!
//! Types and operations are known by the last segment of their path, whatever is in front: imports, renamed crates and
//! re-exports are not seen from here. What a path leads to is the compiler's to say, of the macro's copy of the body.

mod body;
mod checked;
mod constant;
mod diagnostic;
mod expr;
mod file;
mod nearest;
mod nesting;
mod options;
mod place;
mod scan;
mod signature;

pub use constant::constant;
pub use diagnostic::Diagnostic;
pub use file::{FileError, Found, Located, SourceFile, parse_file};
pub use options::Options;
pub use place::{Place, Reported};
pub use signature::{ParamSyntax, Signature};

use crate::{Elem, Graph, Node, Output, OutputId, Param, ParamId, Role};
use checked::Source;
use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use syn::Expr;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};

/// A fn under `#[fused_pattern]`.
#[derive(Debug)]
pub struct Parsed {
    /// What the attribute says.
    pub options: Options,
    /// Doc comments, `cfg`s and lint levels of the fn.
    pub attrs: Vec<syn::Attribute>,
    /// Its visibility.
    pub vis: syn::Visibility,
    /// The name of the generated type: the fn's in CamelCase.
    pub type_name: Ident,
    /// Its signature as written.
    pub syntax: syn::Signature,
    /// Its body as written, without the braces.
    pub body: TokenStream,
    /// Its body's statements, if they are Rust.
    pub statements: Vec<syn::Stmt>,
    /// Its parameters and return types; as much as could be understood.
    pub signature: Signature,
    /// What it returns, by name; as much as could be understood.
    pub outputs: Vec<OutputSyntax>,
    /// Parameters, outputs and, if nothing is wrong, nodes.
    pub graph: Graph,
    /// Everything that is wrong, in no particular order.
    pub diagnostics: Vec<Reported>,
}

/// An element of the returned tuple.
#[derive(Debug)]
pub struct OutputSyntax {
    /// The output's name.
    pub ident: Ident,
    /// Its type.
    pub role: Role,
    /// The parameter that it overwrites.
    pub in_place: Option<ParamId>,
    /// Where its type is.
    pub ty: Place,
}

/// A fn whose body is not looked at yet.
struct RawFn {
    attrs: Vec<syn::Attribute>,
    vis: syn::Visibility,
    syntax: syn::Signature,
    body: TokenStream,
}

impl Parse for RawFn {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let attrs = input.call(syn::Attribute::parse_outer)?;
        let vis = input.parse()?;
        let syntax = input.parse()?;
        let body;
        syn::braced!(body in input);
        Ok(RawFn { attrs, vis, syntax, body: body.parse()? })
    }
}

/// Parses and checks a fn under `#[fused_pattern(attr)]`.
///
/// # Errors
/// Only if `item` is not a fn. What is wrong with the fn is in [`Parsed::diagnostics`].
pub fn parse(attr: TokenStream, item: TokenStream) -> Result<Parsed, Reported> {
    let (head, body) = split(item);
    nesting::check(&head)?;
    let raw = syn::parse2::<RawFn>(head.clone()).map_err(|error| not_a_fn(&head, &error))?;
    let raw = RawFn { body, ..raw };
    let mut diagnostics = Vec::new();
    let options = Options::parse(attr, &mut diagnostics);
    let type_name = signature::type_name(&raw.syntax.ident, &mut diagnostics);
    let signature = Signature::parse(&raw.syntax, &mut diagnostics);
    let attrs = signature::attributes(raw.attrs, &mut diagnostics);
    let body = body::parse(&raw.body, &raw.syntax.ident, &signature, &mut diagnostics);
    let graph = graph(&raw.syntax.ident, &options, &signature, &body);
    let source =
        Source { name: Place::of(&raw.syntax.ident), options: &options, signature: &signature, body: &body };
    diagnostics.extend(source.check(&graph));
    Ok(Parsed {
        options,
        attrs,
        vis: raw.vis,
        type_name,
        syntax: raw.syntax,
        body: raw.body,
        statements: body.statements,
        signature,
        outputs: body.outputs,
        graph,
        diagnostics,
    })
}

/// An item with empty braces in place of its body, and the body: of a body that is too deep for the parser, the signature is
/// understood all the same.
fn split(item: TokenStream) -> (TokenStream, TokenStream) {
    let mut tokens = item.into_iter().collect::<Vec<_>>();
    let body = match tokens.last_mut() {
        Some(TokenTree::Group(group)) => {
            // A macro hands on a `block` in a group of its own.
            while let Some(inside) = only_group(group) {
                *group = inside;
            }
            let mut empty = Group::new(group.delimiter(), TokenStream::new());
            empty.set_span(group.span());
            match group.delimiter() {
                Delimiter::Brace => std::mem::replace(group, empty).stream(),
                _ => TokenStream::new(),
            }
        }
        _ => TokenStream::new(),
    };
    (tokens.into_iter().collect(), body)
}

/// The group that is all there is in a group without brackets.
fn only_group(group: &Group) -> Option<Group> {
    let mut inside = group.stream().into_iter();
    match (group.delimiter(), inside.next(), inside.next()) {
        (Delimiter::None, Some(TokenTree::Group(inner)), None) => Some(inner),
        _ => None,
    }
}

/// A fn that is not finished yet has a better message than that it is none.
fn not_a_fn(item: &TokenStream, error: &syn::Error) -> Reported {
    let last = item.clone().into_iter().last();
    let has_body = !matches!(last, Some(TokenTree::Punct(end)) if end.as_char() == ';');
    match is_fn(item) && has_body {
        true => Diagnostic::syntax(error, item),
        false => Diagnostic::NotAFn {}.at(Place::of(item)),
    }
}

/// Whether `item` is a fn, finished or not: `fn` and a name. A type is `fn(…)`.
pub fn is_fn(item: &TokenStream) -> bool {
    let tokens = item.clone().into_iter().collect::<Vec<_>>();
    let is_named = |pair: &[TokenTree]| match pair {
        [TokenTree::Ident(word), name] => word == "fn" && !matches!(name, TokenTree::Group(_)),
        _ => false,
    };
    tokens.windows(2).any(is_named)
}

/// A name as the compiler knows it: `r#x` is `x`.
fn name(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// The expression without parentheses, and without the groups that macros hand on.
fn ungrouped(e: &Expr) -> &Expr {
    match e {
        Expr::Paren(inner) => ungrouped(&inner.expr),
        Expr::Group(inner) => ungrouped(&inner.expr),
        other => other,
    }
}

fn graph(name: &Ident, options: &Options, signature: &Signature, body: &body::Body) -> Graph {
    let text = |ident: &Ident| self::name(ident).into();
    let mut params = signature
        .params
        .iter()
        .map(|p| Param {
            name: text(&p.ident),
            role: p.role.unwrap_or(Role::Tokens(Elem::Pattern)),
            optional: p.optional,
            in_place: None,
        })
        .collect::<Vec<_>>();
    let mut outputs = Vec::new();
    for (i, (output, value)) in body.outputs.iter().zip(&body.values).enumerate() {
        if let Some(param) = output.in_place {
            params[param.0 as usize].in_place = Some(OutputId(i as u32));
        }
        outputs.push(Output {
            name: text(&output.ident),
            value: *value,
            role: output.role,
            in_place: output.in_place,
        });
    }
    let nodes = body.nodes.iter().map(|n| Node { op: n.op, name: n.name.as_ref().map(text) });
    Graph {
        name: text(name),
        params: params.into(),
        nodes: nodes.collect(),
        outputs: outputs.into(),
        fixed: options.fixed,
    }
}

#[cfg(test)]
mod tests;
