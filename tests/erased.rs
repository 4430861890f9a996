//! Kernels without their pattern's type: what they say of their arguments, and arguments by name.

use seamline::args::{Arg, ArgList};
use seamline::erased::{self, Access, Dim};
use seamline::prelude::*;
use seamline::{Error, ErrorKind};

/// One argument of every kind.
#[fused_pattern(top_k = 2, dtype = f32)]
pub fn seam(
    rows: Permuted,
    map: RowMap,
    weights: ExpertWeights<bf16>,
    shared: Option<Tokens>,
    mut residual: Tokens,
    scale: PerToken,
    gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens<f16>) {
    residual += (finalize(rows, map, weights) + shared) * scale;
    let norm_out = rms_norm(residual, gamma, eps);
    (residual, norm_out)
}

const H: usize = 4;

fn kernel() -> Kernel<erased::Erased> {
    let rank = Group::reference(1).unwrap().remove(0);
    erased::prepare(Seam::GRAPH, &rank, &Prepare::new(3).hidden(H as u32)).unwrap()
}

struct Memory {
    rows: Vec<f32>,
    map: Vec<i32>,
    weights: Vec<bf16>,
    shared: Vec<f32>,
    residual: Vec<f32>,
    scale: Vec<f32>,
    gamma: Vec<f32>,
    norm_out: Vec<f16>,
}

impl Memory {
    fn new() -> Memory {
        Memory {
            rows: (0..3 * H).map(|x| x as f32).collect(),
            map: vec![2, 0, -1, 1],
            weights: [0.5, 2.0, 1.0, 1.5].map(bf16::from_f32).to_vec(),
            shared: vec![0.25; 2 * H],
            residual: (0..2 * H).map(|x| x as f32 / 8.0).collect(),
            scale: vec![1.0, -2.0],
            gamma: vec![1.0, 2.0, 3.0, 4.0],
            norm_out: vec![f16::ZERO; 2 * H],
        }
    }

    fn results(&self) -> (&[f32], &[f16]) {
        (&self.residual, &self.norm_out)
    }
}

#[test]
fn a_kernel_says_what_it_takes() {
    let kernel = kernel();
    let arguments = kernel.arguments();
    let (t, h) = (Dim::Tokens, Dim::Hidden(H as u64));
    let expected = [
        ("rows", "Permuted", Access::Read, DType::F32, vec![Dim::PermutedRows, h], false),
        ("map", "RowMap", Access::Read, DType::I32, vec![t, Dim::TopK(2)], false),
        ("weights", "ExpertWeights", Access::Read, DType::Bf16, vec![t, Dim::TopK(2)], false),
        ("shared", "Tokens", Access::Read, DType::F32, vec![t, h], true),
        ("residual", "Tokens", Access::InPlace, DType::F32, vec![t, h], false),
        ("scale", "PerToken", Access::Read, DType::F32, vec![t], false),
        ("gamma", "Channels", Access::Read, DType::F32, vec![h], false),
        ("eps", "Scalar", Access::Read, DType::F32, vec![], false),
        ("norm_out", "Tokens", Access::Write, DType::F16, vec![t, h], false),
    ];
    assert_eq!(arguments.len(), expected.len());
    for (got, (name, role, access, dtype, dims, optional)) in arguments.iter().zip(expected) {
        assert_eq!((got.name, got.role, got.access, got.dtype), (name, role, access, dtype));
        assert_eq!((&got.dims, got.optional, got.in_place()), (&dims, optional, name == "residual"));
    }
}

#[test]
fn names_lists_and_bundles_are_one_launch() {
    let kernel = kernel();
    let mut typed = Memory::new();
    let bundle = SeamArgs {
        tokens: 2,
        rows: (&typed.rows).into(),
        map: (&typed.map).into(),
        weights: (&typed.weights).into(),
        shared: None,
        residual: (&mut typed.residual).into(),
        scale: (&typed.scale).into(),
        gamma: (&typed.gamma).into(),
        eps: 1e-5,
        norm_out: (&mut typed.norm_out).into(),
    };
    kernel.launch(Queue::host(), bundle).unwrap();

    // In any order; what is optional may be left out.
    let mut named = Memory::new();
    let mut args = kernel.args(2);
    args.output("norm_out", &mut named.norm_out).unwrap().output("residual", &mut named.residual).unwrap();
    args.scalar("eps", 1e-5).unwrap().input("gamma", &named.gamma).unwrap();
    args.input("weights", &named.weights).unwrap().input("scale", &named.scale).unwrap();
    args.input("rows", &named.rows).unwrap().input("map", &named.map).unwrap();
    kernel.launch(Queue::host(), args).unwrap();
    assert_eq!(named.results(), typed.results());

    let mut listed = Memory::new();
    let list: ArgList<'_> = [
        Arg::Input((&listed.rows).into()),
        Arg::Input((&listed.map).into()),
        Arg::Input((&listed.weights).into()),
        Arg::Absent,
        Arg::InPlace((&mut listed.residual).into()),
        Arg::Input((&listed.scale).into()),
        Arg::Input((&listed.gamma).into()),
        Arg::Scalar(1e-5),
        Arg::Output((&mut listed.norm_out).into()),
    ]
    .into_iter()
    .collect();
    kernel.launch(Queue::host(), (2, list)).unwrap();
    assert_eq!(listed.results(), typed.results());

    // Another variant, so that the comparison above is of something.
    let mut shared = Memory::new();
    let mut args = kernel.args(2);
    for (name, input) in [("rows", &shared.rows), ("shared", &shared.shared), ("scale", &shared.scale)] {
        args.input(name, input).unwrap();
    }
    args.input("map", &shared.map).unwrap().input("weights", &shared.weights).unwrap();
    args.input("gamma", &shared.gamma).unwrap().scalar("eps", 1e-5).unwrap();
    args.output("residual", &mut shared.residual).unwrap();
    args.output("norm_out", &mut shared.norm_out).unwrap();
    kernel.launch(Queue::host(), args).unwrap();
    assert_ne!(shared.results(), typed.results());
}

#[test]
fn what_is_named_wrongly_is_told_by_name() {
    let kernel = kernel();
    let memory = Memory::new();
    let mut out = vec![0.0f32; 2 * H];
    let told = |error: Error, parts: &[&str]| {
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert_eq!((error.pattern(), error.rank()), (Some("seam"), Some(0)));
        error
    };
    let mut args = kernel.args(2);
    let error = args.input("gama", &memory.gamma).map(|_| ()).unwrap_err();
    let error = told(error, &["`gama` is no argument", "`gamma`, `eps`, `norm_out`"]);
    assert!(matches!(error.kind(), ErrorKind::UnknownArgument { name, .. } if name == "gama"));

    args.input("gamma", &memory.gamma).unwrap();
    let error = args.input("gamma", &memory.gamma).map(|_| ()).unwrap_err();
    assert!(matches!(told(error, &["`gamma` is given twice"]).kind(), ErrorKind::ArgumentTwice { .. }));

    for name in ["eps", "residual", "norm_out"] {
        let error = args.input(name, &memory.gamma).map(|_| ()).unwrap_err();
        assert!(matches!(told(error, &[name, "gives an input"]).kind(), ErrorKind::ArgumentKind { .. }));
    }
    let error = args.output("shared", &mut out).map(|_| ()).unwrap_err();
    told(error, &["`shared` is an optional input, and the bundle gives an output"]);
    let error = args.scalar("rows", 1.0).map(|_| ()).unwrap_err();
    told(error, &["`rows` is an input that is always present, and the bundle gives a scalar"]);

    // The first that is missing is told by the launch.
    let error = kernel.launch(Queue::host(), args).unwrap_err();
    told(error, &["`rows` is an input that is always present, and the bundle gives nothing"]);
}

#[test]
fn one_rank_of_a_group_is_prepared_from_its_own_thread() {
    let ranks = Group::reference(2).unwrap();
    let options = Prepare::new(3).hidden(H as u32);
    let kernels = std::thread::scope(|scope| {
        let threads = ranks
            .iter()
            .map(|rank| scope.spawn(|| erased::prepare(Seam::GRAPH, rank, &options).unwrap()))
            .collect::<Vec<_>>();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(kernels.iter().map(|kernel| kernel.rank().index()).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(kernels[1].erase().max_tokens(), 3);
}
