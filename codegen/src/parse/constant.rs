//! A graph as a Rust constant, so that a user's binary holds no parser.

use super::body::idents;
use crate::{DType, Elem, Fixed, Graph, Node, Op, Operand, Output, OutputId, Param, ParamId, Role, ValueId};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use std::collections::BTreeSet;

/// What a graph is made of, in the module `private`.
const NAMES: [&str; 15] = [
    "Cow",
    "DType",
    "Elem",
    "Fixed",
    "Graph",
    "GraphOutput",
    "Node",
    "Op",
    "Operand",
    "Operation",
    "OutputId",
    "Param",
    "ParamId",
    "Role",
    "ValueId",
];

/// An expression of type `&'static Graph`, valid in a `const`. `private` is the module that has the names.
pub fn constant(graph: &Graph, private: &TokenStream) -> TokenStream {
    let Graph { name, params, nodes, outputs, fixed } = graph;
    let params = params.iter().map(param);
    let nodes = nodes.iter().map(node);
    let outputs = outputs.iter().map(output);
    let fixed = dims(fixed);
    // A constant for each slice: a temporary with a destructor is not promoted inside a call.
    let constants = quote! {
        const PARAMS: &[Param] = &[#(#params),*];
        const NODES: &[Node] = &[#(#nodes),*];
        const OUTPUTS: &[GraphOutput] = &[#(#outputs),*];
        const GRAPH: &Graph = &Graph {
            name: Cow::Borrowed(#name),
            params: Cow::Borrowed(PARAMS),
            nodes: Cow::Borrowed(NODES),
            outputs: Cow::Borrowed(OUTPUTS),
            fixed: #fixed,
        };
        GRAPH
    };
    // By name: of a glob that leads nowhere every name is an error of its own. And only what is used, or a lint may say so.
    let used = idents(&constants);
    let imports = used.iter().filter(|ident| NAMES.iter().any(|name| ident == name)).collect::<BTreeSet<_>>();
    quote! {{
        use #private::{#(#imports),*};
        #constants
    }}
}

fn param(Param { name, role, optional, in_place }: &Param) -> TokenStream {
    let (role, in_place) = (self::role(*role), option(in_place.map(output_id)));
    quote!(Param { name: Cow::Borrowed(#name), role: #role, optional: #optional, in_place: #in_place })
}

fn node(Node { op, name }: &Node) -> TokenStream {
    let (op, name) = (self::op(*op), option(name.as_ref().map(|name| quote!(Cow::Borrowed(#name)))));
    quote!(Node { op: #op, name: #name })
}

fn output(Output { name, value, role, in_place }: &Output) -> TokenStream {
    let (value, role, in_place) = (value_id(*value), self::role(*role), option(in_place.map(param_id)));
    quote!(GraphOutput { name: Cow::Borrowed(#name), value: #value, role: #role, in_place: #in_place })
}

fn op(op: Op) -> TokenStream {
    let pair = |name: TokenStream, a, b| {
        let (a, b) = (value_id(a), value_id(b));
        quote!(Op::#name(#a, #b))
    };
    match op {
        Op::Param(p) => {
            let p = param_id(p);
            quote!(Op::Param(#p))
        }
        Op::Literal(bits) => quote!(Op::Literal(#bits)),
        Op::Neg(x) => {
            let x = value_id(x);
            quote!(Op::Neg(#x))
        }
        Op::Add(a, b) => pair(quote!(Add), a, b),
        Op::Sub(a, b) => pair(quote!(Sub), a, b),
        Op::Mul(a, b) => pair(quote!(Mul), a, b),
        Op::Call(call) => {
            let operation = format_ident!("{}", call.operation.variant());
            let operands = call.operands().map(operand);
            quote!(Op::call(Operation::#operation, &[#(#operands),*]))
        }
        Op::Result(of, index) => {
            let of = value_id(of);
            quote!(Op::Result(#of, #index))
        }
    }
}

fn operand(operand: Operand) -> TokenStream {
    match operand {
        Operand::Param(p) => {
            let p = param_id(p);
            quote!(Operand::Param(#p))
        }
        Operand::Value(x) => {
            let x = value_id(x);
            quote!(Operand::Value(#x))
        }
    }
}

fn role(role: Role) -> TokenStream {
    let variant = format_ident!("{}", role.type_name());
    let elem = role.argument().map(elem);
    match elem {
        Some(elem) => quote!(Role::#variant(#elem)),
        None => quote!(Role::#variant),
    }
}

fn dims(Fixed { hidden, top_k, ranks, dtype, wire }: &Fixed) -> TokenStream {
    let number = |n: &Option<u32>| option(n.map(|n| quote!(#n)));
    let (hidden, top_k, ranks) = (number(hidden), number(top_k), number(ranks));
    let (dtype, wire) = (option(dtype.map(self::dtype)), option(wire.map(self::dtype)));
    quote!(Fixed { hidden: #hidden, top_k: #top_k, ranks: #ranks, dtype: #dtype, wire: #wire })
}

fn elem(elem: Elem) -> TokenStream {
    match elem {
        Elem::Pattern => quote!(Elem::Pattern),
        Elem::Fixed(d) => {
            let d = dtype(d);
            quote!(Elem::Fixed(#d))
        }
    }
}

fn dtype(dtype: DType) -> TokenStream {
    match dtype {
        DType::Bf16 => quote!(DType::Bf16),
        DType::F16 => quote!(DType::F16),
        DType::F32 => quote!(DType::F32),
        DType::I32 => quote!(DType::I32),
        DType::E4m3 => quote!(DType::E4m3),
    }
}

fn option(tokens: Option<TokenStream>) -> TokenStream {
    match tokens {
        Some(t) => quote!(::core::option::Option::Some(#t)),
        None => quote!(::core::option::Option::None),
    }
}

fn value_id(ValueId(i): ValueId) -> TokenStream {
    quote!(ValueId(#i))
}

fn param_id(ParamId(i): ParamId) -> TokenStream {
    quote!(ParamId(#i))
}

fn output_id(OutputId(i): OutputId) -> TokenStream {
    quote!(OutputId(#i))
}
