//! Parameters and return type.

use super::body::idents;
use super::nearest::hint;
use super::{Diagnostic, Place, Reported, name};
use crate::{DType, Elem, Role};
use proc_macro2::Ident;
use syn::{FnArg, GenericArgument, GenericParam, Pat, PathArguments, ReturnType, Safety, Type};

/// The names of all types.
fn types() -> impl Iterator<Item = &'static str> + Clone {
    Role::ALL.iter().map(|role| role.type_name())
}

/// Parameters and return types.
#[derive(Debug, Default)]
pub struct Signature {
    /// The parameters, in order.
    pub params: Vec<ParamSyntax>,
    /// The names in parameters that are not `name: Type`.
    pub(super) others: Vec<Ident>,
    /// The element types of the returned tuple, in order.
    pub returns: Vec<Return>,
    /// Whether all return types are understood.
    pub(super) returns_known: bool,
}

/// A parameter.
#[derive(Debug)]
pub struct ParamSyntax {
    /// Its name.
    pub ident: Ident,
    /// Its type; `None` if that is not understood.
    pub role: Option<Role>,
    /// Whether it is an `Option`.
    pub optional: bool,
    /// Whether it is `mut`.
    pub mutable: bool,
    /// Where its type is.
    pub ty: Place,
}

/// An element of the return type.
#[derive(Debug)]
pub struct Return {
    /// Its type; `Tokens` where that is not understood.
    pub role: Role,
    /// Where it is.
    pub place: Place,
}

impl Signature {
    /// Whether all parameters are understood.
    pub(super) fn is_known(&self) -> bool {
        self.others.is_empty() && self.params.iter().all(|p| p.role.is_some())
    }

    pub(super) fn parse(syntax: &syn::Signature, diagnostics: &mut Vec<Reported>) -> Signature {
        modifiers(syntax, diagnostics);
        let mut signature = Signature::default();
        for input in &syntax.inputs {
            match param(input, diagnostics) {
                Ok(param) => signature.params.push(param),
                Err(reported) => {
                    signature.others.extend(idents(input));
                    diagnostics.push(reported);
                }
            }
        }
        let before = diagnostics.len();
        match &syntax.output {
            ReturnType::Default => diagnostics.push(Diagnostic::NoReturnType {}.at(Place::of(&syntax.ident))),
            ReturnType::Type(_, ty) => match bare(ty) {
                Type::Tuple(tuple) if tuple.elems.is_empty() => {
                    diagnostics.push(Diagnostic::NoReturnType {}.at(Place::of(ty)));
                }
                Type::Tuple(tuple) => {
                    signature.returns = tuple.elems.iter().map(|ty| returned(ty, diagnostics)).collect();
                }
                one => signature.returns = vec![returned(one, diagnostics)],
            },
        }
        signature.returns_known = diagnostics.len() == before;
        // That there are any is reported, and what they are used for is not.
        let generics = syntax.generics.params.iter().map(generic).collect::<Vec<_>>();
        diagnostics.retain(|reported| match &reported.diagnostic {
            Diagnostic::UnknownType { ty: name, .. }
            | Diagnostic::UnknownDType { name }
            | Diagnostic::ReturnType { ty: name } => !generics.contains(name),
            _ => true,
        });
        signature
    }
}

fn generic(param: &GenericParam) -> String {
    match param {
        GenericParam::Lifetime(param) => param.lifetime.to_string(),
        GenericParam::Type(param) => param.ident.to_string(),
        GenericParam::Const(param) => param.ident.to_string(),
    }
}

/// What may not stand before or around the parameters.
fn modifiers(syntax: &syn::Signature, diagnostics: &mut Vec<Reported>) {
    let mut refuse = |what, place| diagnostics.push(Diagnostic::Modifier { what }.at(place));
    if let Some(token) = &syntax.constness {
        refuse("const", Place::of(token));
    }
    if let Some(token) = &syntax.asyncness {
        refuse("async", Place::of(token));
    }
    match &syntax.safety {
        Safety::Unsafe(token) => refuse("unsafe", Place::of(token)),
        Safety::Safe(token) => refuse("safe", Place::of(token)),
        Safety::Default => {}
    }
    if let Some(abi) = &syntax.abi {
        refuse("extern", Place::of(abi));
    }
    let generics = &syntax.generics;
    if !generics.params.is_empty() {
        diagnostics.push(Diagnostic::Generics {}.at(Place::of(generics)));
    } else if let Some(clause) = &generics.where_clause {
        diagnostics.push(Diagnostic::Generics {}.at(Place::of(clause)));
    }
    if let Some(variadic) = &syntax.variadic {
        let name = quote::quote!(#variadic).to_string();
        diagnostics.push(Diagnostic::ParameterPattern { pattern: name }.at(Place::of(variadic)));
    }
}

/// A type that is not understood is reported and gives a parameter all the same: the bundle needs its field.
fn param(input: &FnArg, diagnostics: &mut Vec<Reported>) -> Result<ParamSyntax, Reported> {
    let input = match input {
        FnArg::Receiver(receiver) => return Err(Diagnostic::Receiver {}.at(Place::of(receiver))),
        FnArg::Typed(input) => input,
    };
    if let Some(attr) = input.attrs.first() {
        diagnostics.push(Diagnostic::InnerAttribute { on: "a parameter" }.at(Place::of(attr)));
    }
    let (ident, mutable) = match &*input.pat {
        Pat::Ident(p) if p.by_ref.is_none() && p.subpat.is_none() => {
            (p.ident.clone(), p.mutability.is_some())
        }
        other => {
            let pattern = quote::quote!(#other).to_string();
            return Err(Diagnostic::ParameterPattern { pattern }.at(Place::of(other)));
        }
    };
    let (ty, optional) = match inside_option(bare(&input.ty)) {
        Some(ty) => (bare(ty), true),
        None => (bare(&input.ty), false),
    };
    let role = role(ty).map_err(|reported| diagnostics.push(reported)).ok();
    Ok(ParamSyntax { ident, role, optional, mutable, ty: Place::of(&input.ty) })
}

fn returned(ty: &Type, diagnostics: &mut Vec<Reported>) -> Return {
    let place = Place::of(ty);
    let role = match role(bare(ty)) {
        Ok(role) if role.is_result() => role,
        Err(reported) if is_misspelt(&reported.diagnostic) => {
            diagnostics.push(reported);
            Role::Tokens(Elem::Pattern)
        }
        _ => {
            let ty = type_text(ty);
            diagnostics.push(Diagnostic::ReturnType { ty }.at(place));
            Role::Tokens(Elem::Pattern)
        }
    };
    Return { role, place }
}

/// Whether it says what is wrong with a type of which it is clear which one was meant.
fn is_misspelt(diagnostic: &Diagnostic) -> bool {
    match diagnostic {
        Diagnostic::UnknownType { hint, .. } => !hint.is_empty(),
        other => matches!(other, Diagnostic::TypeArguments { .. } | Diagnostic::UnknownDType { .. }),
    }
}

/// What a type is, by its last path segment.
fn role(ty: &Type) -> Result<Role, Reported> {
    let place = Place::of(ty);
    let unknown =
        |word: &str| Diagnostic::UnknownType { ty: type_text(ty), hint: hint(word, types()) }.at(place);
    let segment = match ty {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last(),
        Type::Reference(reference) => {
            let ty = type_text(&reference.elem);
            return Err(Diagnostic::ReferenceType { ty }.at(place));
        }
        _ => None,
    };
    let Some(segment) = segment else { return Err(unknown("")) };
    let name = name(&segment.ident);
    let Some(role) = Role::from_name(&name) else { return Err(unknown(&name)) };
    let takes_elem = role.argument().is_some();
    match &segment.arguments {
        PathArguments::None => Ok(role),
        PathArguments::AngleBracketed(list) if takes_elem && list.args.len() == 1 => {
            Ok(role.with(dtype(&list.args[0])?))
        }
        _ => {
            let (takes, instead) = match takes_elem {
                true => ("one dtype", format!("`{name}` or `{name}<f32>`")),
                false => ("no argument", format!("`{name}`")),
            };
            Err(Diagnostic::TypeArguments { ty: name, takes, instead }.at(Place::of(&segment.arguments)))
        }
    }
}

fn dtype(argument: &GenericArgument) -> Result<Elem, Reported> {
    let found = match argument {
        GenericArgument::Type(ty) => match bare(ty) {
            Type::Path(path) => path.path.segments.last().map(|s| name(&s.ident)),
            _ => None,
        },
        _ => None,
    };
    found.and_then(|name| DType::from_name(&name)).map(Elem::Fixed).ok_or_else(|| {
        Diagnostic::UnknownDType { name: quote::quote!(#argument).to_string() }.at(Place::of(argument))
    })
}

/// `T` of `Option<T>`.
fn inside_option(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let segment = path.path.segments.last().filter(|s| name(&s.ident) == "Option")?;
    match &segment.arguments {
        PathArguments::AngleBracketed(list) => match list.args.first() {
            Some(GenericArgument::Type(ty)) => Some(ty),
            _ => None,
        },
        _ => None,
    }
}

/// The type without parentheses and invisible groups.
fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Paren(inner) => bare(&inner.elem),
        Type::Group(inner) => bare(&inner.elem),
        other => other,
    }
}

/// The type as one would write it.
pub(super) fn type_text(ty: &Type) -> String {
    let spaced = quote::quote!(#ty).to_string();
    spaced.replace(" < ", "<").replace(" >", ">").replace(" :: ", "::").replace(" ,", ",").replace("& ", "&")
}

/// The name of the generated type. One that cannot be is reported, and another stands in.
pub(super) fn type_name(ident: &Ident, diagnostics: &mut Vec<Reported>) -> Ident {
    let name = name(ident);
    let ty = camel_case(&name);
    let why = match syn::parse_str::<Ident>(&ty) {
        Err(_) => "is not a name",
        Ok(_) if ty == "Option" || types().any(|name| name == ty) => "patterns are written with",
        Ok(_) => return Ident::new(&ty, ident.span()),
    };
    let other = format!("{ty}Pattern");
    diagnostics.push(Diagnostic::PatternName { name, ty, why }.at(Place::of(ident)));
    Ident::new(syn::parse_str::<Ident>(&other).map_or("Pattern", |_| &other), ident.span())
}

/// `moe_finalize` to `MoeFinalize`.
fn camel_case(snake: &str) -> String {
    let capitalised = |word: &str| {
        let mut chars = word.chars();
        chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
    };
    snake.split('_').map(capitalised).collect()
}

/// The attributes that generated items take over. The others are reported: they would do nothing.
pub(super) fn attributes(attrs: Vec<syn::Attribute>, diagnostics: &mut Vec<Reported>) -> Vec<syn::Attribute> {
    const KEPT: [&str; 8] = ["doc", "cfg", "cfg_attr", "allow", "expect", "warn", "deny", "forbid"];
    let (kept, refused) =
        attrs.into_iter().partition::<Vec<_>, _>(|a| KEPT.iter().any(|k| a.path().is_ident(k)));
    diagnostics.extend(refused.iter().map(|attr| {
        let path = attr.path();
        let name = quote::quote!(#path).to_string();
        Diagnostic::OuterAttribute { name }.at(Place::of(attr))
    }));
    kept
}
