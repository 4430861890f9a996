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
use crate::{DType, Role};
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
        let one_routing = program.present().any(|(id, p)| p.role.routes() && usage.equal_on_all_ranks(id));
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
                        fill.argument(param.role, usage.is_epsilon(id), &routings[rank])
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

impl Role {
    /// Whether its values follow the routing.
    fn routes(self) -> bool {
        matches!(self, Role::Permuted(_) | Role::RowMap | Role::ExpertWeights(_))
    }
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
    fn argument(mut self, role: Role, epsilon: bool, routing: &Routing) -> Argument {
        let hidden = self.program.dims.hidden as usize;
        let dtype = role.dtype(self.program.dims.dtype);
        let tensor = match role {
            Role::Scalar if epsilon => return Argument::Scalar(1e-5),
            // A residual multiplier, say.
            Role::Scalar => return Argument::Scalar(0.5 + self.rng.unit()),
            Role::RowMap => {
                let bytes: Vec<u8> = routing.map.iter().flat_map(|row| row.to_ne_bytes()).collect();
                Buffer::from_bytes(DType::I32, &bytes)
            }
            Role::ExpertWeights(_) => {
                let mut buffer = Buffer::new(dtype, routing.weights.len());
                crate::numerics::store(dtype, &routing.weights, buffer.bytes_mut());
                buffer
            }
            Role::Permuted(_) => {
                let places = routing.owners.iter().map(|owner| {
                    owner.map(|at| Place::Row { token: at / routing.top_k, k: at % routing.top_k })
                });
                self.rows(dtype, hidden, places)
            }
            Role::Tokens(_) => {
                self.rows(dtype, hidden, (0..self.tokens).map(|token| Some(Place::Token(token))))
            }
            Role::Channels(_) => self.rows(dtype, hidden, [Some(Place::Channels)].into_iter()),
            Role::PerToken(_) => self.rows(dtype, self.tokens, [Some(Place::PerToken)].into_iter()),
        };
        Argument::Tensor(Arc::new(tensor))
    }

    /// One row per place; where there is none, NaN: all bits set, in any dtype.
    fn rows(
        &mut self,
        dtype: DType,
        width: usize,
        places: impl ExactSizeIterator<Item = Option<Place>>,
    ) -> Buffer {
        let outliers = outliers(self.seed, self.program.dims.hidden as usize);
        let values = Values { kind: self.kind, seed: self.seed, rank: self.rank, dtype, outliers };
        let mut buffer = Buffer::new(dtype, places.len() * width);
        let size = width * dtype.size();
        if size == 0 {
            return buffer;
        }
        let mut row = vec![0.0; width];
        for (bytes, place) in buffer.bytes_mut().chunks_exact_mut(size).zip(places) {
            match place {
                Some(place) => values.write(place, &mut self.rng, &mut row, bytes),
                None => bytes.fill(0xFF),
            }
        }
        buffer
    }
}
