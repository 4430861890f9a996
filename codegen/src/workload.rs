//! Inputs for any program: ordinary ones, those of an engine, and hostile ones.
//!
//! Deterministic: a seed gives the same bits on every machine. What the contract wants equal on all
//! ranks (inputs that are used after the exchange) is equal; everything else differs by rank, so that
//! mixing ranks up shows.

mod kind;
mod rng;
mod routing;
mod usage;
mod values;

pub use kind::Kind;
pub use routing::padded_rows;

use crate::program::Program;
use crate::reference::{Buffer, Input, RankInputs};
use crate::{ParamId, Role, Tensor};
use rng::Rng;
use routing::Routing;
use std::sync::Arc;
use usage::Usage;
use values::{Place, Values, outliers};

/// The argument for one parameter of one rank.
#[derive(Clone, Debug)]
pub enum Argument {
    /// The variant lacks the parameter.
    Absent,
    /// For a `Scalar`.
    Scalar(f32),
    /// Everything else. Ranks that hold equal inputs share the memory.
    Tensor(Arc<Buffer>),
}

/// The inputs of all ranks for one launch.
#[derive(Clone, Debug)]
pub struct Workload {
    tokens: usize,
    /// Per rank and parameter.
    ranks: Vec<Vec<Argument>>,
}

impl Workload {
    /// Inputs of `kind` for `tokens` tokens of `program`.
    ///
    /// P, the number of permuted rows, follows from the kind. The rows that no map entry points at hold NaN,
    /// which a result shows at once if one of them is read.
    pub fn new(program: &Program, tokens: usize, seed: u64, kind: Kind) -> Workload {
        let usage = Usage::of(program);
        let ranks = program.dims.ranks as usize;
        // A pattern that also finalizes after the exchange needs one routing for all.
        let one_routing = program.present().any(|(id, p)| routes(p.role) && usage.equal_on_all_ranks(id));
        let routing = |rank| Routing::new(program, tokens, kind, seed, if one_routing { 0 } else { rank });
        let routings: Vec<Routing> = (0..ranks).map(routing).collect();
        let mut all: Vec<Vec<Argument>> = vec![Vec::with_capacity(program.params.len()); ranks];
        for (i, param) in program.params.iter().enumerate() {
            let id = crate::ParamId(i as u32);
            let present = !param.optional || program.dims.present.has(id);
            for rank in 0..ranks {
                let argument = match (present, rank) {
                    (false, _) => Argument::Absent,
                    (true, 1..) if usage.equal_on_all_ranks(id) => all[0][i].clone(),
                    _ => {
                        let rng = Rng::new(seed).fork(i as u64).fork(rank as u64);
                        let fill = Fill { program, tokens, seed, kind, rank, rng };
                        fill.argument(id, usage.is_epsilon(id), &routings[rank])
                    }
                };
                all[rank].push(argument);
            }
        }
        Workload { tokens, ranks: all }
    }

    /// T.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// The arguments of `rank`, one per parameter.
    pub fn rank(&self, rank: usize) -> &[Argument] {
        &self.ranks[rank]
    }

    /// The arguments as the reference takes them.
    pub fn inputs(&self) -> Vec<RankInputs<'_>> {
        self.ranks.iter().map(|rank| RankInputs(rank.iter().map(Argument::input).collect())).collect()
    }
}

impl Argument {
    /// Its elements, if it has any.
    pub fn tensor(&self) -> Option<&Buffer> {
        match self {
            Argument::Tensor(buffer) => Some(buffer),
            Argument::Absent | Argument::Scalar(_) => None,
        }
    }

    /// As the reference takes it.
    pub fn input(&self) -> Input<'_> {
        match self {
            Argument::Absent => Input::Absent,
            Argument::Scalar(x) => Input::Scalar(*x),
            Argument::Tensor(buffer) => buffer.as_ref().into(),
        }
    }
}

/// Whether its values follow the routing.
fn routes(role: Role) -> bool {
    matches!(role, Role::Permuted(_) | Role::RowMap | Role::ExpertWeights(_))
}

/// What decides the argument of one parameter.
struct Fill<'a> {
    program: &'a Program,
    tokens: usize,
    seed: u64,
    kind: Kind,
    rank: usize,
    rng: Rng,
}

impl Fill<'_> {
    fn argument(mut self, id: ParamId, epsilon: bool, routing: &Routing) -> Argument {
        let tensor = *self.program.tensor(id);
        let token = |token| Some(Place::Token(token));
        let buffer = match self.program.param(id).role {
            Role::Scalar if epsilon => return Argument::Scalar(1e-5),
            // A residual multiplier, say.
            Role::Scalar => return Argument::Scalar(0.5 + self.rng.unit()),
            Role::RowMap => {
                let bytes: Vec<u8> = routing.map.iter().flat_map(|row| row.to_ne_bytes()).collect();
                spread(&tensor, &bytes)
            }
            Role::ExpertWeights(_) => {
                let mut bytes = vec![0; tensor.bytes(routing.weights.len() as u64) as usize];
                crate::numerics::store(tensor.dtype, &routing.weights, &mut bytes);
                spread(&tensor, &bytes)
            }
            Role::Permuted(_) => {
                let places = routing.owners.iter().map(|owner| {
                    owner.map(|at| Place::Row { token: at / routing.top_k, k: at % routing.top_k })
                });
                self.rows(&tensor, places)
            }
            Role::Tokens(_) | Role::Quantized(_) => self.rows(&tensor, (0..self.tokens).map(token)),
            Role::Channels(_) => self.rows(&tensor, [Some(Place::Channels)].into_iter()),
            Role::PerToken(_) => {
                // One row of all tokens, so that it is drawn as one.
                let row = Tensor { width: self.tokens as u64, stride: self.tokens as u64, ..tensor };
                self.rows(&row, [Some(Place::PerToken)].into_iter())
            }
        };
        Argument::Tensor(Arc::new(buffer))
    }

    /// One row per place; where there is none, and between rows, NaN: all bits set, in any dtype.
    fn rows(&mut self, tensor: &Tensor, places: impl ExactSizeIterator<Item = Option<Place>>) -> Buffer {
        let outliers = outliers(self.seed, self.program.dims.hidden as usize);
        let values =
            Values { kind: self.kind, seed: self.seed, rank: self.rank, dtype: tensor.dtype, outliers };
        let count = places.len() as u64;
        let elements = if count == 0 { 0 } else { (count - 1) * tensor.stride + tensor.width };
        let mut buffer = Buffer::new(tensor.dtype, elements as usize);
        let [size, step] = [tensor.width, tensor.stride].map(|n| tensor.bytes(n) as usize);
        if size == 0 {
            return buffer;
        }
        buffer.bytes_mut().fill(0xFF);
        let mut row = vec![0.0; tensor.width as usize];
        for (bytes, place) in buffer.bytes_mut().chunks_mut(step).zip(places) {
            if let Some(place) = place {
                values.write(place, &mut self.rng, &mut row, &mut bytes[..size]);
            }
        }
        buffer
    }
}

/// Dense rows as `tensor` has them; what lies between them has all bits set.
fn spread(tensor: &Tensor, dense: &[u8]) -> Buffer {
    let [size, step] = [tensor.width, tensor.stride].map(|n| tensor.bytes(n) as usize);
    let count = (dense.len() / size.max(1)) as u64;
    let mut buffer = Buffer::new(tensor.dtype, tensor.elements(count) as usize);
    buffer.bytes_mut().fill(0xFF);
    for (bytes, row) in buffer.bytes_mut().chunks_mut(step.max(1)).zip(dense.chunks(size.max(1))) {
        bytes[..size].copy_from_slice(row);
    }
    buffer
}
