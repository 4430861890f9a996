//! The seam of Kimi-K2 written out once more, loop by loop, to hold the interpreter against.

use crate::graphs::{self, Binding, k2_params};
use half::{bf16, f16};
use seamline_codegen::reference::{self, Buffer};
use seamline_codegen::workload::{Argument, Kind, Workload};
use seamline_codegen::{DType, Presence};

fn rounded(dtype: DType, x: f32) -> f32 {
    match dtype {
        DType::Bf16 => bf16::from_f32(x).to_f32(),
        DType::F16 => f16::from_f32(x).to_f32(),
        _ => x,
    }
}

/// One element's stored bits, its NaN canonical.
fn stored(dtype: DType, x: f32) -> u32 {
    match dtype {
        _ if x.is_nan() => {
            if dtype.size() == 2 {
                0x7FFF
            } else {
                0x7FFF_FFFF
            }
        }
        DType::Bf16 => bf16::from_f32(x).to_bits().into(),
        DType::F16 => f16::from_f32(x).to_bits().into(),
        _ => x.to_bits(),
    }
}

fn bits(buffer: &Buffer) -> Vec<u32> {
    match buffer.as_slice::<u16>() {
        Some(half) => half.iter().map(|&b| b.into()).collect(),
        None => buffer.as_slice::<u32>().unwrap().to_vec(),
    }
}

/// The tree of the contract, over squares.
fn sum_of_squares(x: &[f32]) -> f32 {
    tree(x, |sum, x| x.mul_add(x, sum))
}

fn tree(x: &[f32], join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut chains = [0f32; 4];
    for (b, block) in x.chunks(256).enumerate() {
        let mut lanes = [0f32; 32];
        for (i, &x) in block.iter().enumerate() {
            lanes[i / 8] = join(lanes[i / 8], x);
        }
        for mask in [16, 8, 4, 2, 1] {
            lanes = std::array::from_fn(|l| lanes[l] + lanes[l ^ mask]);
        }
        chains[b % 4] += lanes[0];
    }
    (chains[0] + chains[1]) + (chains[2] + chains[3])
}

struct Rank {
    rows: Vec<f32>,
    map: Vec<i32>,
    weights: Option<Vec<f32>>,
    shared: Option<Vec<f32>>,
    residual: Option<Vec<f32>>,
    gamma: Vec<f32>,
    eps: f32,
}

impl Rank {
    fn of(arguments: &[Argument]) -> Rank {
        let tensor = |i: usize| match &arguments[i] {
            Argument::Tensor(buffer) => Some(buffer.to_f32()),
            _ => None,
        };
        let map = match &arguments[1] {
            Argument::Tensor(buffer) => buffer.as_slice::<i32>().unwrap().to_vec(),
            other => panic!("{other:?}"),
        };
        let eps = match arguments[6] {
            Argument::Scalar(eps) => eps,
            ref other => panic!("{other:?}"),
        };
        Rank {
            rows: tensor(0).unwrap(),
            map,
            weights: tensor(2),
            shared: tensor(3),
            residual: tensor(4),
            gamma: tensor(5).unwrap(),
            eps,
        }
    }

    fn partial(&self, token: usize, channel: usize, hidden: usize, top_k: usize) -> f32 {
        let mut acc = 0f32;
        for k in 0..top_k {
            let row = self.map[token * top_k + k];
            if row >= 0 && (row as usize) < self.rows.len() / hidden {
                let weight = self.weights.as_ref().map_or(1.0, |w| w[token * top_k + k]);
                acc = self.rows[row as usize * hidden + channel].mul_add(weight, acc);
            }
        }
        match &self.shared {
            Some(shared) => acc + shared[token * hidden + channel],
            None => acc,
        }
    }
}

/// `residual_out` and `norm_out`, as bits.
fn k2(ranks: &[Rank], tokens: usize, binding: Binding, wire: DType) -> [Vec<u32>; 2] {
    let (hidden, top_k, dtype) = (binding.hidden as usize, binding.top_k as usize, binding.dtype);
    let mut out = [Vec::new(), Vec::new()];
    for token in 0..tokens {
        let mut residual_out = vec![0f32; hidden];
        for channel in 0..hidden {
            let mut sum = None;
            for rank in ranks {
                let partial = rank.partial(token, channel, hidden, top_k);
                let partial = if ranks.len() == 1 { partial } else { rounded(wire, partial) };
                sum = Some(sum.map_or(partial, |sum: f32| sum + partial));
            }
            let mut x = sum.unwrap();
            if let Some(residual) = &ranks[0].residual {
                x += residual[token * hidden + channel];
            }
            out[0].push(stored(dtype, x));
            residual_out[channel] = rounded(dtype, x);
        }
        let mean = sum_of_squares(&residual_out) / hidden as f32;
        let scale = 1.0 / (mean + ranks[0].eps).sqrt();
        for (x, gamma) in residual_out.iter().zip(&ranks[0].gamma) {
            out[1].push(stored(dtype, x * scale * gamma));
        }
    }
    out
}

#[test]
fn every_bit_of_the_kimi_seam_is_as_written_out() {
    let kinds =
        [Kind::Ordinary, Kind::KIMI_K2, Kind::KIMI_K2_EXPERT_PARALLEL].into_iter().chain(Kind::HOSTILE);
    let dims = [(1, 1, 1), (7, 22, 2), (8, 2, 8), (255, 6, 4), (257, 8, 8), (1032, 10, 2), (2880, 4, 4)];
    let mut cases = 0;
    for (i, kind) in kinds.enumerate() {
        for (j, (hidden, top_k, ranks)) in dims.into_iter().enumerate() {
            for dtype in DType::FLOATS {
                let wire = (i % 3 == 0).then_some(DType::F32);
                let graph = graphs::k2(wire);
                let present = Presence::variants(&graph)[(i + j) % 8];
                let binding = Binding { hidden, top_k, ranks, dtype, present };
                let program = binding.bind(&graph);
                let tokens = 1 + (i + j) % 3;
                let workload = Workload::new(&program, tokens, cases, kind);
                let got = reference::run(&program, &workload.inputs(), tokens).unwrap();
                let literal: Vec<Rank> = (0..ranks as usize).map(|r| Rank::of(workload.rank(r))).collect();
                let expected = k2(&literal, tokens, binding, wire.unwrap_or(dtype));
                for (rank, got) in got.iter().enumerate() {
                    for (o, expected) in expected.iter().enumerate() {
                        assert_eq!(
                            &bits(&got.outputs[o]),
                            expected,
                            "{kind} {binding:?} rank {rank} output {o}"
                        );
                    }
                }
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 13 * 7 * 3);
}

#[test]
fn the_optional_inputs_each_change_the_result() {
    // Otherwise the comparison above would not see a variant that forgets one.
    let graph = graphs::k2(None);
    let full = Binding::default().bind(&graph);
    let workload = Workload::new(&full, 3, 1, Kind::Ordinary);
    let all = reference::run(&full, &workload.inputs(), 3).unwrap();
    for param in [k2_params::WEIGHTS, k2_params::SHARED, k2_params::RESIDUAL] {
        let present = Presence::ALL.without(param);
        let program = Binding { present, ..Binding::default() }.bind(&graph);
        let mut inputs = workload.inputs();
        inputs.iter_mut().for_each(|rank| rank.0[param.0 as usize] = reference::Input::Absent);
        let without = reference::run(&program, &inputs, 3).unwrap();
        assert_ne!(without, all, "{param:?}");
    }
}

#[test]
fn every_bit_of_a_layer_norm_is_as_written_out() {
    let graph = graphs::layer_norm();
    for (i, kind) in [Kind::Ordinary].into_iter().chain(Kind::HOSTILE).enumerate() {
        for hidden in [1u32, 7, 255, 264, 1032, 2880] {
            let binding = Binding { hidden, ranks: 2, ..Binding::default() };
            let program = binding.bind(&graph);
            let workload = Workload::new(&program, 3, i as u64, kind);
            let got = reference::run(&program, &workload.inputs(), 3).unwrap();
            let row = |rank: usize, param: usize, token: usize| {
                let values = workload.rank(rank)[param].tensor().unwrap().to_f32();
                values[token * hidden as usize..][..hidden as usize].to_vec()
            };
            let (w, b) = (row(0, 1, 0), row(0, 2, 0));
            let Argument::Scalar(eps) = workload.rank(0)[3] else { panic!("eps is a scalar") };
            let mut expected = Vec::new();
            for token in 0..3 {
                let x: Vec<f32> = row(0, 0, token).iter().zip(row(1, 0, token)).map(|(a, b)| a + b).collect();
                let mean = tree(&x, |sum, x| sum + x) / hidden as f32;
                let deviation: Vec<f32> = x.iter().map(|x| x - mean).collect();
                let scale = 1.0 / (sum_of_squares(&deviation) / hidden as f32 + eps).sqrt();
                let of = |(d, (w, b)): (&f32, (&f32, &f32))| stored(DType::F32, d * scale * w + b);
                expected.extend(deviation.iter().zip(w.iter().zip(&b)).map(of));
            }
            got.iter().for_each(|rank| assert_eq!(bits(&rank.outputs[0]), expected, "{kind} H={hidden}"));
        }
    }
}

#[test]
fn every_bit_of_a_token_in_fp8_is_as_written_out() {
    let graph = graphs::fp8_per_token();
    for (i, kind) in [Kind::Ordinary].into_iter().chain(Kind::HOSTILE).enumerate() {
        for hidden in [1usize, 7, 264, 2880] {
            let binding = Binding { hidden: hidden as u32, ranks: 2, ..Binding::default() };
            let program = binding.bind(&graph);
            let workload = Workload::new(&program, 5, i as u64, kind);
            let got = reference::run(&program, &workload.inputs(), 5).unwrap();
            let [a, b] = [0, 1].map(|rank| workload.rank(rank)[0].tensor().unwrap().to_f32());
            let x: Vec<f32> = a.iter().zip(b).map(|(a, b)| a + b).collect();
            let (mut fp8, mut scales) = (Vec::new(), Vec::new());
            for row in x.chunks(hidden) {
                let largest = match row.iter().any(|x| x.is_nan()) {
                    true => f32::NAN,
                    false => row.iter().fold(0f32, |largest, x| largest.max(x.abs())),
                };
                let least = 1.0 / (448.0 * 512.0);
                let scale = if largest / 448.0 < least { least } else { largest / 448.0 };
                scales.push(stored(DType::F32, scale));
                fp8.extend(row.iter().map(|x| seamline_codegen::e4m3::from_f32(x * (1.0 / scale)).0));
            }
            for rank in &got {
                assert_eq!(rank.outputs[0].bytes(), fp8, "{kind} H={hidden}");
                assert_eq!(bits(&rank.outputs[1]), scales, "{kind} H={hidden}");
            }
        }
    }
}
