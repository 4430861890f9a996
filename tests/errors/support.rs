//! The pattern that is launched wrongly, its memory, and what to expect.

use seamline::Error;
use seamline::prelude::*;

/// All kinds of arguments, and what it takes to make mistakes with them.
#[fused_pattern(dtype = bf16)]
pub fn seam(
    rows: Permuted,
    map: RowMap,
    weights: Option<ExpertWeights<f32>>,
    shared: Option<Tokens>,
    scale: PerToken<f32>,
    gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    let local = finalize(rows, map, weights) + shared;
    let sum_out = all_reduce(local) * scale;
    let norm_out = rms_norm(sum_out, gamma, eps);
    (sum_out, norm_out)
}

/// Three optional inputs.
#[fused_pattern(hidden = 64, dtype = f32)]
pub fn optional(x: Tokens, a: Option<Tokens>, b: Option<Tokens>, c: Option<Tokens>) -> Tokens {
    let sum = x + a + b + c;
    sum
}

pub const T: usize = 3;
pub const H: usize = 64;
pub const K: usize = 4;
pub const P: usize = 7;

/// Memory for one launch of `T` tokens, 16-byte aligned with room to be misaligned in.
pub struct Memory {
    pub rows: Vec<bf16>,
    pub map: Vec<i32>,
    pub weights: Vec<f32>,
    pub shared: Vec<bf16>,
    pub scale: Vec<f32>,
    pub gamma: Vec<bf16>,
    pub sum_out: Vec<bf16>,
    pub norm_out: Vec<bf16>,
}

impl Memory {
    pub fn new() -> Memory {
        let one = bf16::from_f32(1.0);
        Memory {
            rows: vec![one; P * H],
            map: vec![0; T * K],
            weights: vec![0.25; T * K],
            shared: vec![one; T * H],
            scale: vec![1.0; T],
            gamma: vec![one; H],
            sum_out: vec![one; T * H],
            norm_out: vec![one; T * H],
        }
    }

    pub fn args(&mut self) -> SeamArgs<'_> {
        SeamArgs {
            tokens: T,
            rows: (&self.rows).into(),
            map: (&self.map).into(),
            weights: Some((&self.weights).into()),
            shared: Some((&self.shared).into()),
            scale: (&self.scale).into(),
            gamma: (&self.gamma).into(),
            eps: 1e-5,
            sum_out: (&mut self.sum_out).into(),
            norm_out: (&mut self.norm_out).into(),
        }
    }
}

pub fn options() -> Prepare {
    Prepare::new(T).hidden(H as u32).top_k(K as u32)
}

pub fn kernel(options: &Prepare) -> Kernel<Seam> {
    Seam::prepare(&Group::reference(1).unwrap()[0], options).unwrap()
}

/// An input at any address. No launch here gets as far as to read it.
pub fn input(address: u64, dtype: DType, len: usize) -> Input<'static> {
    // SAFETY: the launches are refused, or the caller keeps the memory.
    unsafe { Input::raw(address, dtype, len) }
}

/// An output of [T, H] and `more` elements at any address.
pub fn output(address: u64, more: usize) -> Output<'static> {
    // SAFETY: the launches are refused, or the caller keeps the memory.
    unsafe { Output::raw(address, DType::Bf16, T * H + more) }
}

/// The error of a launch whose arguments `change` has spoilt; nothing may have been stored.
pub fn launch(change: impl for<'a> FnOnce(&mut SeamArgs<'a>)) -> Error {
    let mut memory = Memory::new();
    let mut args = memory.args();
    change(&mut args);
    let error = kernel(&options()).launch(Queue::host(), args).unwrap_err();
    assert!(memory.sum_out.iter().chain(&memory.norm_out).all(|x| x.to_f32() == 1.0), "a refused launch ran");
    assert_eq!((error.pattern(), error.rank()), (Some("seam"), Some(0)));
    error
}

/// The error of a `prepare`.
pub fn prepare(options: &Prepare) -> Error {
    Seam::prepare(&Group::reference(1).unwrap()[0], options).unwrap_err()
}

/// Asserts the kind and parts of the message.
macro_rules! assert_error {
    ($error:expr, $kind:pat, $($part:expr),+) => {
        let error: seamline::Error = $error;
        let text = error.to_string();
        assert!(matches!(error.kind(), $kind), "{text}");
        for part in [$($part),+] {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
    };
}

pub(crate) use assert_error;
