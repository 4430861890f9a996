//! Statements, and the result.

use super::expr::{Assignment, Binding, Bound, Scope};
use super::signature::{Signature, type_text};
use super::{Diagnostic, OutputSyntax, Place, Reported, nesting, ungrouped};
use crate::{Elem, Op, ParamId, Role, ValueId};
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{BinOp, Block, Expr, Local, Pat, Stmt, Token};

/// Stands for the value of an output that could not be understood.
pub(super) const UNKNOWN: ValueId = ValueId(u32::MAX);

/// What a body says.
pub(super) struct Body {
    pub nodes: Vec<NodeSyntax>,
    pub outputs: Vec<OutputSyntax>,
    /// Per output; [`UNKNOWN`] only if the body is not whole.
    pub values: Vec<ValueId>,
    pub statements: Vec<Stmt>,
    pub assignments: Vec<Assignment>,
    /// Every statement and the result are understood.
    pub whole: bool,
}

/// A node, and where it is written.
pub(super) struct NodeSyntax {
    pub op: Op,
    pub name: Option<Ident>,
    pub place: Place,
    pub operands: Vec<Place>,
}

pub(super) fn parse(
    tokens: &TokenStream,
    function: &Ident,
    signature: &Signature,
    diagnostics: &mut Vec<Reported>,
) -> Body {
    let before = diagnostics.len();
    let mut scope = Scope::new(signature, diagnostics);
    let mut statements = Vec::new();
    let parsed = nesting::check(tokens).and_then(|()| {
        Block::parse_within.parse2(tokens.clone()).map_err(|error| Diagnostic::syntax(&error, tokens))
    });
    let result = match parsed {
        Ok(parsed) => {
            statements = parsed;
            let end = statements.last().map_or(Place::of(function), Place::of);
            let result = scope.statements(&statements);
            let outputs = scope.result(result, end);
            scope.in_place(&outputs);
            outputs
        }
        Err(reported) => {
            scope.report(reported);
            scope.names(last_names(tokens))
        }
    };
    let (outputs, values) = result.into_iter().unzip();
    let (nodes, assignments) = (scope.nodes, scope.assignments);
    Body { nodes, outputs, values, statements, assignments, whole: diagnostics.len() == before }
}

/// The names of the result of a body that does not parse (yet: an editor asks while it is typed).
fn last_names(tokens: &TokenStream) -> Vec<Ident> {
    match tokens.clone().into_iter().last() {
        Some(TokenTree::Ident(name)) => vec![name],
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
            let names = Punctuated::<Ident, Token![,]>::parse_terminated.parse2(group.stream());
            names.into_iter().flatten().collect()
        }
        _ => Vec::new(),
    }
}

impl Scope<'_> {
    /// Follows the statements; answers the last expression.
    fn statements<'s>(&mut self, statements: &'s [Stmt]) -> Option<&'s Expr> {
        // An item is known in front of it too. It is reported, and what it is used for is not.
        for name in statements.iter().filter(|s| matches!(s, Stmt::Item(_))).flat_map(idents) {
            if self.find(&name).is_none() {
                self.bind_unknown(&name);
            }
        }
        let mut statements = statements.iter().filter(|s| !is_empty(s));
        let last = statements.next_back()?;
        statements.for_each(|s| self.statement(s));
        match last {
            Stmt::Expr(Expr::Return(e), _) => {
                self.report(Diagnostic::Return {}.at(Place::of(&e.return_token)));
                e.expr.as_deref()
            }
            Stmt::Expr(result, None) => {
                self.attributes(last);
                Some(result)
            }
            Stmt::Expr(result, Some(end)) if matches!(ungrouped(result), Expr::Path(_) | Expr::Tuple(_)) => {
                self.report(Diagnostic::NoResult {}.at(Place::of(end)));
                Some(result)
            }
            _ => {
                self.statement(last);
                None
            }
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        // Of what has no place in a body, nor have its attributes.
        if !matches!(statement, Stmt::Item(_) | Stmt::Macro(_)) {
            self.attributes(statement);
        }
        match statement {
            Stmt::Local(local) => self.binding(local),
            Stmt::Item(_) => self.report(Diagnostic::Item {}.at(Place::of(statement))),
            Stmt::Macro(m) => self.macro_call(&m.mac),
            Stmt::Expr(Expr::Assign(e), _) => {
                let value = self.bound(&e.right);
                self.assign(&e.left, value);
            }
            Stmt::Expr(Expr::Binary(e), _) if is_assignment(&e.op) => self.compound(e),
            Stmt::Expr(e, _) => {
                let before = self.reported();
                self.bound(e);
                if self.reported() == before {
                    self.report(Diagnostic::NoEffect {}.at(Place::of(e)));
                }
            }
        }
    }

    fn attributes(&mut self, statement: &Stmt) {
        if let Some(TokenTree::Punct(first)) = statement.to_token_stream().into_iter().next()
            && first.as_char() == '#'
        {
            self.report(Diagnostic::InnerAttribute { on: "a statement" }.at(Place::of(statement)));
        }
    }

    fn binding(&mut self, local: &Local) {
        let init = local.init.as_ref().filter(|init| init.diverge.is_none());
        if let (Pat::Tuple(pat), Some(init)) = (&local.pat, init)
            && let Some(names) = pat.elems.iter().map(result_name).collect::<Option<Vec<_>>>()
            && let Some(results) =
                self.results(&init.expr, &names.iter().map(|n| n.map(|p| &p.ident)).collect::<Vec<_>>())
        {
            for (p, bound) in names.into_iter().zip(results) {
                if let Some(p) = p {
                    self.bind(&p.ident, Binding { bound, mutable: p.mutability.is_some(), param: None });
                }
            }
            return;
        }
        let fresh = self.nodes.len();
        let bound = match init.map(|init| (&local.pat, &*init.expr)) {
            // `let (a, b) = (x, y)`: the pattern is reported.
            Some((Pat::Tuple(_), Expr::Tuple(tuple))) => {
                for value in &tuple.elems {
                    self.bound(value);
                }
                Bound::Unknown
            }
            Some((_, value)) => self.bound(value),
            None => {
                self.report(Diagnostic::LetValue {}.at(Place::of(local)));
                Bound::Unknown
            }
        };
        let pat = match &local.pat {
            Pat::Type(typed) => {
                if init.is_some() {
                    let ty = type_text(&typed.ty);
                    self.report(Diagnostic::LetType { ty }.at(Place::of(&typed.ty)));
                }
                &typed.pat
            }
            pat => pat,
        };
        match pat {
            Pat::Ident(p) if p.by_ref.is_none() && p.subpat.is_none() => {
                // An alias (`let a = b;`) makes no node, and the node keeps its first name.
                self.name_node(bound, fresh, &p.ident);
                let mutable = p.mutability.is_some() || init.is_none();
                self.bind(&p.ident, Binding { bound, mutable, param: None });
            }
            other => {
                let pattern = quote::quote!(#other).to_string();
                self.report(Diagnostic::LetPattern { pattern }.at(Place::of(other)));
                idents(other).iter().for_each(|name| self.bind_unknown(name));
            }
        }
    }

    /// `x += e`; the others are reported.
    fn compound(&mut self, e: &syn::ExprBinary) {
        let place = Place::of(e);
        let left = match ungrouped(&e.left) {
            Expr::Path(_) => self.value(&e.left),
            _ => None,
        };
        let right = self.value(&e.right);
        let value = match e.op {
            BinOp::AddAssign(_) => match (left, right) {
                (Some(a), Some(b)) => {
                    let operands = vec![Place::of(&e.left), Place::of(&e.right)];
                    Bound::Value(self.node(Op::Add(a, b), place, operands))
                }
                _ => Bound::Unknown,
            },
            op => {
                let operator = op.to_token_stream().to_string();
                let diagnostic = match op {
                    BinOp::SubAssign(_) | BinOp::MulAssign(_) => Diagnostic::CompoundAssignment { operator },
                    BinOp::DivAssign(_) => Diagnostic::Division {},
                    _ => Diagnostic::Operator { operator },
                };
                self.report(diagnostic.at(Place::of(&op)));
                Bound::Unknown
            }
        };
        self.assign(&e.left, value);
    }

    fn assign(&mut self, target: &Expr, value: Bound) {
        let ident = match ungrouped(target) {
            Expr::Path(path) => path.path.get_ident(),
            _ => None,
        };
        let Some(ident) = ident else {
            return self.report(Diagnostic::AssignTarget {}.at(Place::of(target)));
        };
        let Some(binding) = self.lookup(ident) else { return self.bind_unknown(ident) };
        if !binding.mutable {
            let name = ident.to_string();
            self.report(Diagnostic::AssignImmutable { name }.at(Place::of(target)));
        }
        if let Some(param) = binding.param {
            self.assigned[param.0 as usize] = true;
        }
        self.name_node(value, 0, ident);
        let place = Place::of(target);
        // Parameters are checked as updates in place.
        if binding.param.is_none()
            && let (Some(from), Some(to)) = (self.read(binding.bound, place), self.read(value, place))
        {
            self.assignments.push(Assignment { name: ident.to_string(), place, from, to });
        }
        // From here on it is taken for what it was meant to be.
        self.bind(ident, Binding { bound: value, mutable: true, ..binding });
    }

    /// The outputs that the last expression names, with their values.
    fn result(&mut self, result: Option<&Expr>, end: Place) -> Vec<(OutputSyntax, ValueId)> {
        let Some(result) = result else {
            if !self.signature.returns.is_empty() {
                self.report(Diagnostic::NoResult {}.at(end));
            }
            return Vec::new();
        };
        let elements = match ungrouped(result) {
            Expr::Tuple(tuple) => tuple.elems.iter().collect(),
            one => vec![one],
        };
        let expected = self.signature.returns.len();
        if self.signature.returns_known && expected != elements.len() {
            let got = elements.len();
            self.report(Diagnostic::ResultCount { expected, got }.at(Place::of(result)));
        }
        let mut outputs = Vec::new();
        for (i, element) in elements.into_iter().enumerate() {
            let ident = match ungrouped(element) {
                Expr::Path(path) => path.path.get_ident(),
                _ => None,
            };
            let Some(ident) = ident else {
                let before = self.reported();
                self.bound(element);
                if self.reported() == before {
                    self.report(Diagnostic::ResultNotNamed {}.at(Place::of(element)));
                }
                continue;
            };
            let value = self.value(element).unwrap_or(UNKNOWN);
            outputs.push((self.output(i, ident), value));
        }
        outputs
    }

    fn names(&self, names: Vec<Ident>) -> Vec<(OutputSyntax, ValueId)> {
        names.iter().enumerate().map(|(i, ident)| (self.output(i, ident), UNKNOWN)).collect()
    }

    fn output(&self, i: usize, ident: &Ident) -> OutputSyntax {
        let ty = self.signature.returns.get(i);
        OutputSyntax {
            ident: ident.clone(),
            role: ty.map_or(Role::Tokens(Elem::Pattern), |r| r.role),
            in_place: self.find(ident).filter(|b| b.mutable).and_then(|b| b.param),
            ty: ty.map_or(Place::of(ident), |r| r.place),
        }
    }

    /// A `mut` parameter is assigned and returned, or the `mut` is a mistake.
    fn in_place(&mut self, outputs: &[(OutputSyntax, ValueId)]) {
        let params = self.signature.params.iter().enumerate().filter(|(_, p)| p.mutable);
        for (i, param) in params {
            let name = param.ident.to_string();
            let id = Some(ParamId(i as u32));
            let place = Place::of(&param.ident);
            if !self.assigned[i] {
                self.report(Diagnostic::MutNeverAssigned { name }.at(place));
            } else if !outputs.iter().any(|(o, _)| o.in_place == id) {
                self.report(Diagnostic::MutNotReturned { name }.at(place));
            }
        }
    }
}

/// The name that a result is given, or nothing for `_`; `None` for any other pattern.
fn result_name(pat: &Pat) -> Option<Option<&syn::PatIdent>> {
    match pat {
        Pat::Ident(p) if p.by_ref.is_none() && p.subpat.is_none() => Some(Some(p)),
        Pat::Wild(_) => Some(None),
        _ => None,
    }
}

fn is_assignment(op: &BinOp) -> bool {
    // `==`, `<=` and their like end in `=` too, and assign nothing.
    let text = op.to_token_stream().to_string();
    text.ends_with('=') && !matches!(op, BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Le(_) | BinOp::Ge(_))
}

/// The identifiers in `tokens`.
pub(super) fn idents(tokens: &impl ToTokens) -> Vec<Ident> {
    let of = |token| match token {
        TokenTree::Ident(ident) => vec![ident],
        TokenTree::Group(group) => idents(&group.stream()),
        _ => Vec::new(),
    };
    tokens.to_token_stream().into_iter().flat_map(of).collect()
}

/// `;` alone.
fn is_empty(statement: &&Stmt) -> bool {
    matches!(statement, Stmt::Expr(Expr::Verbatim(tokens), Some(_)) if tokens.is_empty())
}
