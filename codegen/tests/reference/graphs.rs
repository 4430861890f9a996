//! The patterns of these tests, as graphs.

use seamline_codegen::{
    DType, Dims, Elem, Fixed, Graph, Node, Op, Operation, Output, OutputId, Param, ParamId, Presence,
    Program, Request, Role, ValueId,
};

pub const TOKENS: Role = Role::Tokens(Elem::Pattern);
pub const CHANNELS: Role = Role::Channels(Elem::Pattern);

/// What a graph is bound to; the defaults are small.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    pub hidden: u32,
    pub top_k: u32,
    pub ranks: u32,
    pub dtype: DType,
    pub present: Presence,
}

impl Default for Binding {
    fn default() -> Self {
        Binding { hidden: 264, top_k: 4, ranks: 4, dtype: DType::Bf16, present: Presence::ALL }
    }
}

impl Binding {
    pub fn bind(self, graph: &Graph) -> Program {
        let request = Request {
            hidden: Some(self.hidden),
            top_k: graph.has_top_k().then_some(self.top_k),
            dtype: Some(self.dtype),
            ranks: self.ranks,
        };
        let dims = Dims::bind(graph, &request, self.present).unwrap();
        graph.bind(&dims).unwrap()
    }
}

/// Writes a graph down in the order of its source.
pub struct Builder {
    name: &'static str,
    params: Vec<Param>,
    nodes: Vec<Node>,
    outputs: Vec<Output>,
    wire: Option<DType>,
}

impl Builder {
    pub fn new(name: &'static str) -> Builder {
        Builder { name, params: Vec::new(), nodes: Vec::new(), outputs: Vec::new(), wire: None }
    }

    pub fn wire(mut self, wire: DType) -> Builder {
        self.wire = Some(wire);
        self
    }

    pub fn param(&mut self, name: &'static str, role: Role) -> ParamId {
        self.params.push(Param { name: name.into(), role, optional: false, in_place: None });
        ParamId(self.params.len() as u32 - 1)
    }

    pub fn optional(&mut self, name: &'static str, role: Role) -> ParamId {
        let id = self.param(name, role);
        self.params[id.0 as usize].optional = true;
        id
    }

    pub fn op(&mut self, op: Op) -> ValueId {
        self.nodes.push(Node { op, name: None });
        ValueId(self.nodes.len() as u32 - 1)
    }

    /// Declares a parameter and reads it.
    pub fn value(&mut self, name: &'static str, role: Role) -> ValueId {
        let id = self.param(name, role);
        self.op(Op::Param(id))
    }

    pub fn literal(&mut self, x: f32) -> ValueId {
        self.op(Op::Literal(x.to_bits()))
    }

    pub fn rms_norm(&mut self, x: ValueId, w: ValueId, eps: ValueId) -> ValueId {
        self.op(Op::call(Operation::RmsNorm, &[x.into(), w.into(), eps.into()]))
    }

    pub fn output(&mut self, name: &'static str, value: ValueId, elem: Elem) -> OutputId {
        let role = Role::Tokens(elem);
        self.outputs.push(Output { name: name.into(), value, role, in_place: None });
        OutputId(self.outputs.len() as u32 - 1)
    }

    pub fn in_place(&mut self, param: ParamId, output: OutputId) {
        self.params[param.0 as usize].in_place = Some(output);
        self.outputs[output.0 as usize].in_place = Some(param);
    }

    pub fn build(self) -> Graph {
        Graph {
            name: self.name.into(),
            params: self.params.into(),
            nodes: self.nodes.into(),
            outputs: self.outputs.into(),
            fixed: Fixed { wire: self.wire, ..Fixed::default() },
        }
    }
}

/// Parameters of [`k2`].
pub mod k2_params {
    use seamline_codegen::ParamId;
    pub const ROWS: ParamId = ParamId(0);
    pub const MAP: ParamId = ParamId(1);
    pub const WEIGHTS: ParamId = ParamId(2);
    pub const SHARED: ParamId = ParamId(3);
    pub const RESIDUAL: ParamId = ParamId(4);
}

/// The seam of Kimi-K2: finalize, shared expert, all-reduce, residual, norm. Returns `residual_out`
/// and `norm_out`; weights, shared expert and residual may be absent.
pub fn k2(wire: Option<DType>) -> Graph {
    let mut g = Builder { wire, ..Builder::new("moe_finalize_ar_residual_rmsnorm") };
    let rows = g.param("gemm2_out", Role::Permuted(Elem::Pattern));
    let map = g.param("expanded_idx_to_permuted_idx", Role::RowMap);
    let weights = g.optional("expert_scale_factor", Role::ExpertWeights(Elem::Fixed(DType::F32)));
    let shared = g.optional("shared_expert_output", TOKENS);
    let residual = g.optional("residual_in", TOKENS);
    let (shared, residual) = (g.op(Op::Param(shared)), g.op(Op::Param(residual)));
    let gamma = g.value("rms_gamma", CHANNELS);
    let eps = g.value("eps", Role::Scalar);
    let finalized = g.op(Op::call(Operation::Finalize, &[rows.into(), map.into(), weights.into()]));
    let local = g.op(Op::Add(finalized, shared));
    let reduced = g.op(Op::call(Operation::AllReduce, &[local.into()]));
    let residual_out = g.op(Op::Add(reduced, residual));
    let norm_out = g.rms_norm(residual_out, gamma, eps);
    g.output("residual_out", residual_out, Elem::Pattern);
    g.output("norm_out", norm_out, Elem::Pattern);
    g.build()
}

/// A dense layer with Gemma's `1.0 + w`, its residual in place.
pub fn gemma() -> Graph {
    let mut g = Builder::new("ar_residual_gemma_norm");
    let x = g.value("x", TOKENS);
    let residual = g.param("residual", TOKENS);
    let residual_in = g.op(Op::Param(residual));
    let gamma = g.value("gamma", CHANNELS);
    let eps = g.value("eps", Role::Scalar);
    let one = g.literal(1.0);
    let reduced = g.op(Op::call(Operation::AllReduce, &[x.into()]));
    let residual_out = g.op(Op::Add(reduced, residual_in));
    let w = g.op(Op::Add(one, gamma));
    let norm_out = g.rms_norm(residual_out, w, eps);
    let output = g.output("residual", residual_out, Elem::Pattern);
    g.in_place(residual, output);
    g.output("norm_out", norm_out, Elem::Pattern);
    g.build()
}

/// Nothing but the sum.
pub fn sum() -> Graph {
    let mut g = Builder::new("sum");
    let x = g.value("x", TOKENS);
    let out = g.op(Op::call(Operation::AllReduce, &[x.into()]));
    g.output("out", out, Elem::Pattern);
    g.build()
}

/// No ranks: finalize with weights of the pattern's dtype, stored as f32.
pub fn finalize() -> Graph {
    let mut g = Builder::new("finalize");
    let rows = g.param("rows", Role::Permuted(Elem::Pattern));
    let map = g.param("map", Role::RowMap);
    let weights = g.param("weights", Role::ExpertWeights(Elem::Pattern));
    let out = g.op(Op::call(Operation::Finalize, &[rows.into(), map.into(), weights.into()]));
    g.output("out", out, Elem::Fixed(DType::F32));
    g.build()
}

/// Gemma 3's sandwich: a norm on either side of the residual.
pub fn sandwich() -> Graph {
    let mut g = Builder::new("sandwich");
    let x = g.value("x", TOKENS);
    let residual = g.value("residual", TOKENS);
    let (post, pre) = (g.value("post", CHANNELS), g.value("pre", CHANNELS));
    let eps = g.value("eps", Role::Scalar);
    let reduced = g.op(Op::call(Operation::AllReduce, &[x.into()]));
    let normed = g.rms_norm(reduced, post, eps);
    let residual_out = g.op(Op::Add(normed, residual));
    let norm_out = g.rms_norm(residual_out, pre, eps);
    g.output("residual_out", residual_out, Elem::Pattern);
    g.output("norm_out", norm_out, Elem::Fixed(DType::F16));
    g.build()
}

/// A norm before the exchange, its weights each rank's own.
pub fn norm_then_sum() -> Graph {
    let mut g = Builder::new("norm_then_sum");
    let x = g.value("x", TOKENS);
    let gamma = g.value("gamma", CHANNELS);
    let eps = g.value("eps", Role::Scalar);
    let normed = g.rms_norm(x, gamma, eps);
    let out = g.op(Op::call(Operation::AllReduce, &[normed.into()]));
    g.output("out", out, Elem::Pattern);
    g.build()
}

/// Every elementwise operation and every space: a gated shared expert and a scaled residual.
pub fn gated() -> Graph {
    let mut g = Builder::new("gated").wire(DType::F32);
    let rows = g.param("rows", Role::Permuted(Elem::Pattern));
    let map = g.param("map", Role::RowMap);
    let weights = g.param("weights", Role::ExpertWeights(Elem::Pattern));
    let shared = g.value("shared", TOKENS);
    let gate = g.value("gate", Role::PerToken(Elem::Fixed(DType::F32)));
    let residual = g.value("residual", Role::Tokens(Elem::Fixed(DType::F32)));
    let multiplier = g.value("multiplier", Role::Scalar);
    let bias = g.value("bias", CHANNELS);
    let finalized = g.op(Op::call(Operation::Finalize, &[rows.into(), map.into(), weights.into()]));
    let gated = g.op(Op::Mul(gate, shared));
    let local = g.op(Op::Sub(finalized, gated));
    let reduced = g.op(Op::call(Operation::AllReduce, &[local.into()]));
    let scaled = g.op(Op::Mul(reduced, multiplier));
    let negated = g.op(Op::Neg(bias));
    let biased = g.op(Op::Sub(scaled, negated));
    let out = g.op(Op::Add(biased, residual));
    g.output("reduced", reduced, Elem::Pattern);
    g.output("out", out, Elem::Fixed(DType::F32));
    g.build()
}

/// A layer norm of the sum over ranks, in f32.
pub fn layer_norm() -> Graph {
    let mut g = Builder::new("layer_norm");
    let (x, w, b) = (g.value("x", TOKENS), g.value("w", CHANNELS), g.value("b", CHANNELS));
    let eps = g.value("eps", Role::Scalar);
    let sum = g.op(Op::call(Operation::AllReduce, &[x.into()]));
    let out = g.op(Op::call(Operation::LayerNorm, &[sum.into(), w.into(), b.into(), eps.into()]));
    g.output("out", out, Elem::Fixed(DType::F32));
    g.build()
}

/// A norm of the sum over ranks, stored as e4m3 with a scale a token.
pub fn fp8_per_token() -> Graph {
    let mut g = Builder::new("fp8_per_token");
    let x = g.value("x", TOKENS);
    let sum = g.op(Op::call(Operation::AllReduce, &[x.into()]));
    let pair = g.op(Op::call(Operation::QuantFp8PerToken, &[sum.into()]));
    let [fp8, scale] = [0, 1].map(|i| g.op(Op::Result(pair, i)));
    let e4m3 = Elem::Fixed(DType::E4m3);
    for (name, value, role) in
        [("fp8", fp8, Role::Quantized(e4m3)), ("scale", scale, Role::PerToken(Elem::Fixed(DType::F32)))]
    {
        g.outputs.push(Output { name: name.into(), value, role, in_place: None });
    }
    g.build()
}

/// All that are about a few roundings from the mathematics, whatever the inputs.
pub fn all() -> [Graph; 8] {
    [k2(None), k2(Some(DType::F32)), gemma(), sum(), finalize(), sandwich(), norm_then_sum(), gated()]
}
