//! One rank's values, and how each instruction computes them.

use super::execute::RankResult;
use super::inputs::{BoundParam, BoundRank};
use super::real::Real;
use crate::program::{Inst, Program, Reg, Space};
use crate::tensor::Dim;
use crate::{DType, ParamId, Tensor};

/// Which lines a walk computes: those that no token changes, or those of one token.
#[derive(Clone, Copy)]
pub(super) enum Pass {
    Launch,
    Token(usize),
}

/// A rank in the middle of a walk.
#[derive(Clone)]
pub(super) struct Frame<'a, R: Real> {
    program: &'a Program,
    params: &'a [BoundParam<'a>],
    /// Per line: H elements where the value has channels, one elsewhere, none for a store.
    pub(super) values: Vec<Vec<R>>,
    /// A row as it was read.
    row: Vec<R>,
    outputs: Vec<Vec<R::Stored>>,
    stray_rows: u64,
}

impl<'a, R: Real> Frame<'a, R> {
    pub(super) fn new(rank: &'a BoundRank<'a>) -> Self {
        let hidden = rank.program.dims.hidden as usize;
        let values = rank.program.lines.iter().map(|line| match line.inst {
            Inst::Store(..) => Vec::new(),
            _ if line.space.has_channels() => vec![R::default(); hidden],
            _ => vec![R::default()],
        });
        Frame {
            program: rank.program,
            params: &rank.params,
            values: values.collect(),
            row: vec![R::default(); hidden],
            outputs: vec![Vec::new(); rank.program.outputs.len()],
            stray_rows: 0,
        }
    }

    pub(super) fn finish(self) -> RankResult<R> {
        RankResult { outputs: self.outputs, stray_rows: self.stray_rows }
    }

    pub(super) fn lines(&self) -> usize {
        self.program.lines.len()
    }

    pub(super) fn inst(&self, line: usize) -> Inst {
        self.program.lines[line].inst
    }

    /// Computes the lines of `pass` from `line` on; answers the first that exchanges, or the end.
    pub(super) fn run(&mut self, line: usize, pass: Pass) -> usize {
        for i in line..self.lines() {
            let line = &self.program.lines[i];
            let fixed = matches!(line.space, Space::Uniform | Space::Channel);
            let token = match (pass, line.inst) {
                (Pass::Token(token), Inst::Store(..)) => token,
                (Pass::Launch, Inst::Store(..)) => continue,
                (Pass::Token(token), _) if !fixed => token,
                (Pass::Launch, _) if fixed => 0,
                _ => continue,
            };
            if let Inst::Exchange(_) = line.inst {
                return i;
            }
            self.step(i, token);
        }
        self.lines()
    }

    /// Computes line `i` for `token`.
    fn step(&mut self, i: usize, token: usize) {
        let (before, rest) = self.values.split_at_mut(i);
        let out = rest[0].as_mut_slice();
        let value = |reg: Reg| before[reg.0 as usize].as_slice();
        match self.program.lines[i].inst {
            Inst::Load(p) => self.params[p.0 as usize].load(token, out),
            Inst::Const(bits) => out.fill(f32::from_bits(bits).into()),
            Inst::Gather { rows, map, weights } => {
                self.stray_rows += self.gather(rows, map, weights, token, i);
            }
            Inst::Neg(x) => unary(out, value(x), |x| -x),
            Inst::DivideBy(x, n) => unary(out, value(x), |x| x / R::from(n as f32)),
            Inst::Reciprocal(x) => unary(out, value(x), |x| R::from(1.0) / x),
            Inst::MaxMagnitude(a, b) => binary(out, value(a), value(b), R::max_magnitude),
            Inst::InverseSqrt(x) => unary(out, value(x), |x| R::from(1.0) / x.sqrt()),
            Inst::Add(a, b) => binary(out, value(a), value(b), |a, b| a + b),
            Inst::Sub(a, b) => binary(out, value(a), value(b), |a, b| a - b),
            Inst::Mul(a, b) => binary(out, value(a), value(b), |a, b| a * b),
            Inst::Round(x, dtype) => {
                out.copy_from_slice(value(x));
                R::round(dtype, out);
            }
            Inst::Reduce(x, reduction) => {
                out[0] = R::reduce(spread(value(x), &mut self.row), reduction);
            }
            Inst::Store(x, o) => {
                let o = o.0 as usize;
                let tensor = &self.program.outputs[o].tensor;
                let row = match tensor.ty.has(Dim::Hidden) {
                    true => spread(value(x), &mut self.row),
                    false => value(x),
                };
                R::store(tensor.dtype, row, &mut self.outputs[o]);
            }
            // The ranks meet there, so `run` stops before it.
            Inst::Exchange(_) => {}
        }
    }

    /// Computes line `i`, a `Gather`; answers how many row indices were neither a row nor -1.
    fn gather(
        &mut self,
        rows: ParamId,
        map: ParamId,
        weights: Option<ParamId>,
        token: usize,
        i: usize,
    ) -> u64 {
        let top_k = self.program.dims.top_k as usize;
        let param = |id: ParamId| &self.params[id.0 as usize];
        let (rows, map, weights) = (param(rows), param(map), weights.map(param));
        let (count, stride) = rows.rows();
        let mut stray = 0;
        let acc = &mut self.values[i];
        acc.fill(R::default());
        for k in 0..top_k {
            let index = map.index(token, k);
            match usize::try_from(index) {
                Ok(index) if index < count => {
                    let weight = weights.map_or(R::from(1.0), |weights| weights.element(token, k));
                    rows.read(index * stride, &mut self.row);
                    R::accumulate(acc, &self.row, weight);
                }
                _ => stray += u64::from(index != -1),
            }
        }
        stray
    }
}

impl BoundParam<'_> {
    /// Its value for `token`, in the shape of `out`.
    fn load<R: Real>(&self, token: usize, out: &mut [R]) {
        match *self {
            BoundParam::Scalar(x) => out.fill(x.into()),
            BoundParam::Elements { tensor, .. } => self.read(token * tensor.token_stride() as usize, out),
        }
    }

    /// The elements from `start` on.
    fn read<R: Real>(&self, start: usize, out: &mut [R]) {
        if let BoundParam::Elements { tensor: Tensor { dtype, .. }, bytes } = *self {
            R::load(dtype, &bytes[start * dtype.size()..][..out.len() * dtype.size()], out);
        }
    }

    /// Element `k` of `token`'s row.
    fn element<R: Real>(&self, token: usize, k: usize) -> R {
        let mut element = [R::default()];
        self.read(self.at(token, k), &mut element);
        element[0]
    }

    /// The same of a row map.
    fn index(&self, token: usize, k: usize) -> i32 {
        match self {
            BoundParam::Elements { tensor: Tensor { dtype: DType::I32, .. }, bytes } => {
                i32::from_ne_bytes(bytes.as_chunks().0[self.at(token, k)])
            }
            _ => -1,
        }
    }

    fn at(&self, token: usize, k: usize) -> usize {
        match self {
            BoundParam::Elements { tensor, .. } => token * tensor.token_stride() as usize + k,
            BoundParam::Scalar(_) => 0,
        }
    }

    /// How many rows it has, and how far they lie apart.
    fn rows(&self) -> (usize, usize) {
        match self {
            BoundParam::Elements { tensor, bytes } => {
                let len = (bytes.len() / tensor.dtype.size()) as u64;
                (tensor.rows(len) as usize, tensor.stride as usize)
            }
            BoundParam::Scalar(_) => (0, 0),
        }
    }
}

/// A value as a whole row: itself, or its one element repeated.
fn spread<'a, R: Copy>(value: &'a [R], row: &'a mut [R]) -> &'a [R] {
    match value {
        &[x] => {
            row.fill(x);
            row
        }
        _ => value,
    }
}

fn unary<R: Copy>(out: &mut [R], x: &[R], f: impl Fn(R) -> R) {
    for (out, &x) in out.iter_mut().zip(x) {
        *out = f(x);
    }
}

/// Elementwise, with the operand that has no channels repeated over them.
fn binary<R: Copy>(out: &mut [R], a: &[R], b: &[R], f: impl Fn(R, R) -> R) {
    match (a, b) {
        (&[a], _) => unary(out, b, |b| f(a, b)),
        (_, &[b]) => unary(out, a, |a| f(a, b)),
        _ => {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = f(a, b);
            }
        }
    }
}
