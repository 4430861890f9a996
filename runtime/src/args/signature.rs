//! What a kernel's arguments must be: the graph's parameters and outputs with the dims filled in.

use seamline_codegen::tensor::Access;
use seamline_codegen::{Graph, Program, Tensor};

/// One argument of a bundle, in [`Bundle::collect`](crate::Bundle::collect)'s order.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) optional: bool,
    /// What it is in memory.
    pub(crate) tensor: Tensor,
    /// What its address must be a multiple of.
    pub(crate) align: u64,
}

/// How an argument is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Input,
    Scalar,
    InPlace,
    Output,
}

impl Argument {
    fn new(name: &str, kind: Kind, optional: bool, tensor: Tensor) -> Argument {
        Argument { name: name.to_owned(), kind, optional, tensor, align: tensor.align() }
    }

    /// Bytes from one token's row to the next; 0 where the tokens share them.
    pub(crate) fn token_bytes(&self) -> u64 {
        self.tensor.bytes(self.tensor.token_stride())
    }

    /// Constant weights: read before the wait for the preceding kernel.
    pub(crate) fn is_constant(&self) -> bool {
        self.tensor.ty.access == Access::Weights
    }
}

/// The arguments of `program`'s bundle, absent ones too.
pub(crate) fn arguments(graph: &Graph, program: &Program) -> Vec<Argument> {
    let params = graph.params.iter().zip(&program.tensors).map(|(param, tensor)| {
        let kind = match tensor.ty.access {
            _ if param.in_place.is_some() => Kind::InPlace,
            Access::Value => Kind::Scalar,
            Access::Weights | Access::Activations => Kind::Input,
        };
        Argument::new(&param.name, kind, param.optional, *tensor)
    });
    let outputs = program.outputs.iter().filter(|o| o.in_place.is_none());
    params.chain(outputs.map(|o| Argument::new(&o.name, Kind::Output, false, o.tensor))).collect()
}
