//! Expressions, and the names they refer to.

use super::body::NodeSyntax;
use super::nearest::hint;
use super::signature::Signature;
use super::{Diagnostic, Place, Reported, name, ungrouped};
use crate::op::{OperandKind, Operation};
use crate::{Call, Op, Operand, ParamId, Role, ValueId};
use proc_macro2::Ident;
use quote::ToTokens;
use syn::{BinOp, Expr, ExprCall, Lit, PathArguments, UnOp};

/// What a name or an expression stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    /// A parameter that has not been read as a value.
    Param(ParamId),
    /// A value.
    Value(ValueId),
    /// Something that was reported.
    Unknown,
}

/// A name in scope.
#[derive(Clone, Copy)]
pub(super) struct Binding {
    pub bound: Bound,
    pub mutable: bool,
    /// The parameter whose own name this is, assigned to or not.
    pub param: Option<ParamId>,
}

/// `x = …` or `x += …`, where `x` is not a parameter.
pub(super) struct Assignment {
    pub name: String,
    pub place: Place,
    pub from: ValueId,
    pub to: ValueId,
}

/// The body so far.
pub(super) struct Scope<'a> {
    pub signature: &'a Signature,
    pub nodes: Vec<NodeSyntax>,
    /// Per parameter: whether the body assigns to it.
    pub assigned: Vec<bool>,
    /// What a name stood for, and what was assigned to it.
    pub assignments: Vec<Assignment>,
    /// Later ones shadow earlier ones.
    bindings: Vec<(String, Binding)>,
    /// Per parameter: the node that reads it.
    reads: Vec<Option<ValueId>>,
    diagnostics: &'a mut Vec<Reported>,
}

impl<'a> Scope<'a> {
    pub fn new(signature: &'a Signature, diagnostics: &'a mut Vec<Reported>) -> Self {
        let params = &signature.params;
        let mut scope = Scope {
            signature,
            nodes: Vec::new(),
            assigned: vec![false; params.len()],
            assignments: Vec::new(),
            bindings: Vec::new(),
            reads: vec![None; params.len()],
            diagnostics,
        };
        signature.others.iter().for_each(|name| scope.bind_unknown(name));
        for (i, param) in params.iter().enumerate() {
            let id = ParamId(i as u32);
            let bound = param.role.map_or(Bound::Unknown, |_| Bound::Param(id));
            scope.bind(&param.ident, Binding { bound, mutable: param.mutable, param: Some(id) });
            // Its memory will be written, at the earliest where its new value is computed, which may be before
            // the body mentions the old one (`let sum = a + b; let c = x * y; x = sum;`).
            if let (true, Some(Role::Tokens(_))) = (param.mutable, param.role) {
                scope.read(bound, Place::of(&param.ident));
            }
        }
        scope
    }

    pub fn report(&mut self, reported: Reported) {
        self.diagnostics.push(reported);
    }

    /// How many messages there are.
    pub fn reported(&self) -> usize {
        self.diagnostics.len()
    }

    pub fn bind(&mut self, ident: &Ident, binding: Binding) {
        self.bindings.push((name(ident), binding));
    }

    /// Binds a name of which no more is to be said.
    pub fn bind_unknown(&mut self, ident: &Ident) {
        self.bind(ident, Binding { bound: Bound::Unknown, mutable: true, param: None });
    }

    pub fn find(&self, ident: &Ident) -> Option<Binding> {
        let name = name(ident);
        self.bindings.iter().rfind(|(n, _)| *n == name).map(|(_, binding)| *binding)
    }

    fn is_unknown(&self, ident: &Ident) -> bool {
        self.find(ident).is_some_and(|b| matches!(b.bound, Bound::Unknown))
    }

    /// What `name` refers to; reports it if that is nothing.
    pub fn lookup(&mut self, name: &Ident) -> Option<Binding> {
        let found = self.find(name);
        if found.is_none() {
            self.undefined(&name.to_string(), Place::of(name));
        }
        found
    }

    fn undefined(&mut self, name: &str, place: Place) {
        let hint = hint(name, self.bindings.iter().map(|(n, _)| n.as_str()));
        self.report(Diagnostic::Undefined { name: name.to_owned(), hint }.at(place));
    }

    pub fn node(&mut self, op: Op, place: Place, operands: Vec<Place>) -> ValueId {
        self.nodes.push(NodeSyntax { op, name: None, place, operands });
        ValueId(self.nodes.len() as u32 - 1)
    }

    /// Names the node of `bound`, if it is not older than `fresh` and has no name.
    pub fn name_node(&mut self, bound: Bound, fresh: usize, name: &Ident) {
        if let Bound::Value(id) = bound
            && id.0 as usize >= fresh
            && !matches!(self.nodes[id.0 as usize].op, Op::Param(_))
        {
            self.nodes[id.0 as usize].name.get_or_insert_with(|| name.clone());
        }
    }

    /// The value of `e`; `None` if something in it was reported.
    pub fn value(&mut self, e: &Expr) -> Option<ValueId> {
        let bound = self.bound(e);
        self.read(bound, Place::of(e))
    }

    /// The value of `bound`, which is read at `place`.
    pub fn read(&mut self, bound: Bound, place: Place) -> Option<ValueId> {
        match bound {
            Bound::Value(id) => Some(id),
            Bound::Param(p) => Some(match self.reads[p.0 as usize] {
                Some(id) => id,
                None => {
                    let id = self.node(Op::Param(p), place, Vec::new());
                    *self.reads[p.0 as usize].insert(id)
                }
            }),
            Bound::Unknown => None,
        }
    }

    pub fn bound(&mut self, e: &Expr) -> Bound {
        let place = Place::of(e);
        let op = match e {
            Expr::Paren(inner) => return self.bound(&inner.expr),
            Expr::Group(inner) => return self.bound(&inner.expr),
            Expr::Path(path) => {
                return match path.path.get_ident() {
                    Some(name) => self.lookup(name).map_or(Bound::Unknown, |b| b.bound),
                    None => {
                        self.undefined(&path.to_token_stream().to_string().replace(' ', ""), place);
                        Bound::Unknown
                    }
                };
            }
            Expr::Lit(lit) => literal(&lit.lit).map(|bits| (Op::Literal(bits), Vec::new())),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
                let Some(x) = self.value(&unary.expr) else { return Bound::Unknown };
                Ok((Op::Neg(x), vec![Place::of(&unary.expr)]))
            }
            Expr::Binary(binary) => {
                let operator: Result<fn(ValueId, ValueId) -> Op, _> = match binary.op {
                    BinOp::Add(_) => Ok(Op::Add),
                    BinOp::Sub(_) => Ok(Op::Sub),
                    BinOp::Mul(_) => Ok(Op::Mul),
                    BinOp::Div(_) => Err(Diagnostic::Division {}),
                    op => Err(Diagnostic::Operator { operator: op.to_token_stream().to_string() }),
                };
                let (a, b) = (self.value(&binary.left), self.value(&binary.right));
                match (operator, a, b) {
                    (Ok(operator), Some(a), Some(b)) => {
                        Ok((operator(a, b), vec![Place::of(&binary.left), Place::of(&binary.right)]))
                    }
                    (Ok(_), ..) => return Bound::Unknown,
                    (Err(diagnostic), ..) => Err(diagnostic),
                }
            }
            Expr::Call(call) => match self.call(call) {
                Some((Op::Call(made), _)) if made.operation.spec().results.len() > 1 => {
                    Err(several(made.operation))
                }
                Some(made) => Ok(made),
                None => return Bound::Unknown,
            },
            Expr::Macro(m) => {
                self.macro_call(&m.mac);
                return Bound::Unknown;
            }
            other => Err(refusal(other)),
        };
        match op {
            Ok((op, operands)) => Bound::Value(self.node(op, place, operands)),
            Err(diagnostic) => {
                self.report(diagnostic.at(place));
                Bound::Unknown
            }
        }
    }

    /// The results of a call of an operation that has several, as many as `names`; `None` if `e` is something else.
    pub fn results(&mut self, e: &Expr, names: &[Option<&Ident>]) -> Option<Vec<Bound>> {
        let Expr::Call(call) = ungrouped(e) else { return None };
        let operation = match ungrouped(&call.func) {
            Expr::Path(path) => Operation::from_name(&name(&path.path.segments.last()?.ident))?,
            _ => return None,
        };
        let count = operation.spec().results.len();
        if count == 1 {
            return None;
        }
        let unknown = vec![Bound::Unknown; names.len()];
        let Some((op, operands)) = self.call(call) else { return Some(unknown) };
        if count != names.len() {
            self.report(several(operation).at(Place::of(e)));
            return Some(unknown);
        }
        let of = self.node(op, Place::of(e), operands);
        let result = |(i, name): (usize, &Option<&Ident>)| match name {
            Some(name) => {
                let id = self.node(Op::Result(of, i as u32), Place::of(name), vec![Place::of(e)]);
                self.nodes[id.0 as usize].name = Some((*name).clone());
                Bound::Value(id)
            }
            None => Bound::Unknown,
        };
        Some(names.iter().enumerate().map(result).collect())
    }

    pub fn macro_call(&mut self, mac: &syn::Macro) {
        if mac.path.get_ident().is_some_and(|name| self.is_unknown(name)) {
            return;
        }
        let name = mac.path.to_token_stream().to_string().replace(' ', "");
        self.report(Diagnostic::Macro { name }.at(Place::of(mac)));
    }

    /// A call of an operation; its operands are looked at even if it is unknown.
    fn call(&mut self, call: &ExprCall) -> Option<(Op, Vec<Place>)> {
        let path = match ungrouped(&call.func) {
            Expr::Path(path) if path.qself.is_none() => {
                path.path.segments.last().map(|last| (&path.path, last))
            }
            _ => None,
        };
        let Some((path, last)) = path else {
            self.report(refusal(ungrouped(&call.func)).at(Place::of(&call.func)));
            return None;
        };
        let name = name(&last.ident);
        let Some(operation) = Operation::from_name(&name) else {
            let names = Operation::ALL.iter().map(|o| o.name());
            let operations = names.clone().collect::<Vec<_>>().join(", ");
            let hint = hint(&name, names);
            if !self.is_unknown(&last.ident) {
                let diagnostic = Diagnostic::UnknownOperation { name, hint, operations };
                self.report(diagnostic.at(Place::of(&call.func)));
            }
            for e in &call.args {
                self.bound(e);
            }
            return None;
        };
        if path.segments.iter().any(|segment| segment.arguments != PathArguments::None) {
            self.report(Diagnostic::CallTypeArguments { name }.at(Place::of(&call.func)));
        }
        let (expected, got) = (operation.spec().operands.len(), call.args.len());
        if expected != got {
            let usage = operation.usage();
            self.report(Diagnostic::OperandCount { usage, expected, got }.at(Place::of(call)));
        }
        let mut operands = Vec::new();
        for (operand, e) in operation.spec().operands.iter().zip(&call.args) {
            match operand.kind {
                OperandKind::Value(_) => operands.extend(self.value(e).map(Operand::Value)),
                OperandKind::Param(expected) => match self.bound(e) {
                    Bound::Param(id) => operands.push(Operand::Param(id)),
                    Bound::Value(_) => {
                        let (usage, operand) = (operation.usage(), operand.name);
                        let diagnostic = Diagnostic::OperandNotAParameter { usage, operand, expected };
                        self.report(diagnostic.at(Place::of(e)));
                    }
                    Bound::Unknown => {}
                },
            }
        }
        let understood = got == expected && operands.len() == expected;
        let places = || call.args.iter().map(Place::of).collect();
        understood.then(|| (Op::Call(Call::new(operation, &operands)), places()))
    }
}

/// What to say where an operation with several results is not taken apart.
fn several(operation: Operation) -> Diagnostic {
    let count = operation.spec().results.len();
    let names = ["a", "b", "c", "d"].into_iter().take(count).collect::<Vec<_>>().join(", ");
    Diagnostic::SeveralResults { usage: operation.usage(), count, names }
}

/// The f32 of a literal, by its bits.
fn literal(lit: &Lit) -> Result<u32, Diagnostic> {
    let text = lit.to_token_stream().to_string();
    let (digits, suffix) = match lit {
        Lit::Float(f) => (f.base10_digits(), f.suffix()),
        Lit::Int(i) if !["0x", "0o", "0b"].iter().any(|p| text.starts_with(p)) => {
            (i.base10_digits(), i.suffix())
        }
        _ => return Err(Diagnostic::LiteralKind { literal: text }),
    };
    if !matches!(suffix, "" | "f32") {
        return Err(Diagnostic::LiteralSuffix { digits: digits.to_owned(), suffix: suffix.to_owned() });
    }
    // Straight from decimal to f32: through f64 it would be rounded twice.
    let value = digits.parse::<f32>().map_err(|_| Diagnostic::LiteralKind { literal: text.clone() })?;
    let mantissa = digits.split(['e', 'E']).next().unwrap_or_default();
    if value.is_infinite() {
        Err(Diagnostic::LiteralRange { literal: text, becomes: "infinity" })
    } else if value == 0.0 && mantissa.contains(|c| ('1'..='9').contains(&c)) {
        Err(Diagnostic::LiteralRange { literal: text, becomes: "zero" })
    } else {
        Ok(value.to_bits())
    }
}

/// Why an expression is not part of a pattern.
fn refusal(e: &Expr) -> Diagnostic {
    match e {
        Expr::If(_) | Expr::Let(_) => Diagnostic::Branch { keyword: "if" },
        Expr::Match(_) => Diagnostic::Branch { keyword: "match" },
        Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) => Diagnostic::Loop {},
        Expr::MethodCall(call) => {
            let name = name(&call.method);
            let instead = match Operation::from_name(&name) {
                Some(operation) => format!("write `{}`", operation.usage()),
                None => {
                    let usages =
                        Operation::ALL.iter().map(|o| format!("`{}`", o.usage())).collect::<Vec<_>>();
                    format!("operations are called as functions, {}", usages.join(", "))
                }
            };
            Diagnostic::MethodCall { instead }
        }
        Expr::Closure(_) => Diagnostic::Closure {},
        Expr::Reference(_) | Expr::RawAddr(_) => Diagnostic::Reference { operator: "&" },
        Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => Diagnostic::Reference { operator: "*" },
        Expr::Unary(_) => Diagnostic::Operator { operator: "!".to_owned() },
        Expr::Cast(_) => Diagnostic::Cast {},
        Expr::Index(_) | Expr::Field(_) => Diagnostic::Part {},
        Expr::Tuple(_) => Diagnostic::TupleValue {},
        Expr::Block(_) | Expr::Unsafe(_) | Expr::Const(_) | Expr::Async(_) => Diagnostic::Block {},
        Expr::Return(_) => Diagnostic::Return {},
        other => Diagnostic::Unsupported { source_text: other.to_token_stream().to_string() },
    }
}
