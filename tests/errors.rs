//! Bad input: what each gets, before anything runs. On the reference executor; the checks are every
//! executor's.

use seamline::prelude::*;
use seamline::{Error, ErrorKind};

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

const T: usize = 3;
const H: usize = 64;
const K: usize = 4;
const P: usize = 7;

/// Memory for one launch of `T` tokens, 16-byte aligned with room to be misaligned in.
struct Memory {
    rows: Vec<bf16>,
    map: Vec<i32>,
    weights: Vec<f32>,
    shared: Vec<bf16>,
    scale: Vec<f32>,
    gamma: Vec<bf16>,
    sum_out: Vec<bf16>,
    norm_out: Vec<bf16>,
}

impl Memory {
    fn new() -> Memory {
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

    fn args(&mut self) -> SeamArgs<'_> {
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

fn options() -> Prepare {
    Prepare::new(T).hidden(H as u32).top_k(K as u32)
}

fn kernel(options: &Prepare) -> Kernel<Seam> {
    Seam::prepare(&Group::reference(1).unwrap()[0], options).unwrap()
}

/// An input at any address. No launch here gets as far as to read it.
fn input(address: u64, dtype: DType, len: usize) -> Input<'static> {
    // SAFETY: the launches are refused, or the caller keeps the memory.
    unsafe { Input::raw(address, dtype, len) }
}

/// An output of [T, H] and `more` elements at any address.
fn output(address: u64, more: usize) -> Output<'static> {
    // SAFETY: the launches are refused, or the caller keeps the memory.
    unsafe { Output::raw(address, DType::Bf16, T * H + more) }
}

/// The error of a launch whose arguments `change` has spoilt; nothing may have been stored.
fn launch(change: impl for<'a> FnOnce(&mut SeamArgs<'a>)) -> Error {
    let mut memory = Memory::new();
    let mut args = memory.args();
    change(&mut args);
    let error = kernel(&options()).launch(Queue::host(), args).unwrap_err();
    assert!(memory.sum_out.iter().chain(&memory.norm_out).all(|x| x.to_f32() == 1.0), "a refused launch ran");
    assert_eq!((error.pattern(), error.rank()), (Some("seam"), Some(0)));
    error
}

/// The error of a `prepare`.
fn prepare(options: &Prepare) -> Error {
    Seam::prepare(&Group::reference(1).unwrap()[0], options).unwrap_err()
}

/// Asserts the kind and parts of the message.
macro_rules! assert_error {
    ($error:expr, $kind:pat, $($part:expr),+) => {
        let error: Error = $error;
        let text = error.to_string();
        assert!(matches!(error.kind(), $kind), "{text}");
        for part in [$($part),+] {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
    };
}

#[test]
fn good_input_is_accepted() {
    let mut memory = Memory::new();
    kernel(&options()).launch(Queue::host(), memory.args()).unwrap();
    // Four experts of weight a quarter each, and the shared one.
    assert!(memory.sum_out.iter().all(|x| x.to_f32() == 2.0));
}

#[test]
fn wrong_dtype() {
    let weights = [bf16::ONE; T * K];
    assert_error!(
        launch(|args| args.weights = Some(input(weights.as_ptr() as u64, DType::Bf16, T * K))),
        ErrorKind::DType { expected: DType::F32, got: DType::Bf16, .. },
        "`weights` holds bf16, and must hold f32"
    );
}

#[test]
fn flat_row_map() {
    static MAP: [i32; T * K] = [0; T * K];
    assert_error!(
        launch(|args| args.map = Input::from(&MAP).shaped([T * K])),
        ErrorKind::Shape { .. },
        "`map` has the shape [12], and must have [T, K] with T = 3 or more, K = 4"
    );
}

#[test]
fn wrong_shape() {
    static TRANSPOSED: [i32; T * K] = [0; T * K];
    assert_error!(
        launch(|args| args.map = Input::from(&TRANSPOSED).shaped([K, T])),
        ErrorKind::Shape { .. },
        "[4, 3]",
        "[T, K]"
    );
    static ROWS: [bf16; P * H] = [bf16::ONE; P * H];
    assert_error!(
        launch(|args| args.rows = Input::from(&ROWS).shaped([P, H / 2, 2])),
        ErrorKind::Shape { .. },
        "[7, 32, 2]",
        "[P, H], H = 64"
    );
    assert_error!(
        launch(|args| args.gamma = Input::from(&ROWS[..2 * H]).shaped([2 * H])),
        ErrorKind::Shape { .. },
        "`gamma`",
        "[H], H = 64"
    );
    static SCALE: [f32; T] = [1.0; T];
    assert_error!(
        launch(|args| args.scale = Input::from(&SCALE).shaped([T, 1])),
        ErrorKind::Shape { .. },
        "`scale`",
        "[T] with T = 3 or more"
    );
}

#[test]
fn a_shape_that_lies() {
    static MAP: [i32; T * K + 1] = [0; T * K + 1];
    assert_error!(
        launch(|args| args.map = Input::from(&MAP).shaped([T, K])),
        ErrorKind::ShapeLength { expected: 12, got: 13, .. },
        "`map` has 13 elements"
    );
}

#[test]
fn too_short_for_the_tokens() {
    static SHORT: [bf16; T * H - 1] = [bf16::ONE; T * H - 1];
    assert_error!(
        launch(|args| args.shared = Some((&SHORT).into())),
        ErrorKind::TooShort { tokens: T, expected: 192, got: 191, .. },
        "`shared` holds 191 elements, and [T, H] of 3 tokens needs 192"
    );
    assert_error!(
        launch(|args| args.gamma = (&SHORT[..H - 1]).into()),
        ErrorKind::TooShort { .. },
        "`gamma`",
        "64"
    );
}

#[test]
fn missing_output() {
    assert_error!(
        launch(|args| args.norm_out = (&mut [] as &mut [bf16]).into()),
        ErrorKind::TooShort { got: 0, .. },
        "`norm_out` holds 0 elements"
    );
}

#[test]
fn misaligned() {
    static MAP: [u128; 4] = [0; 4];
    let address = MAP.as_ptr() as u64;
    assert_error!(
        launch(|args| args.map = input(address + 4, DType::I32, T * K)),
        ErrorKind::Misaligned { expected: 16, .. },
        "`map` begins at",
        "multiple of 16 bytes"
    );
    static ROWS: [u128; P * H / 8 + 1] = [0; P * H / 8 + 1];
    let address = ROWS.as_ptr() as u64;
    assert_error!(
        launch(|args| args.rows = input(address + 2, DType::Bf16, P * H)),
        ErrorKind::Misaligned { expected: 16, .. },
        "`rows`"
    );
}

#[test]
fn outputs_that_overlap() {
    let mut memory = vec![0u128; 4 * T * H];
    let address = memory.as_mut_ptr() as u64;
    let last_row = address + ((T - 1) * H * 2) as u64;
    assert_error!(
        launch(|args| (args.sum_out, args.norm_out) = (output(address, 0), output(last_row, 0))),
        ErrorKind::Overlap { .. },
        "overlaps",
        "`sum_out`",
        "`norm_out`"
    );
    assert_error!(
        launch(|args| {
            args.shared = Some(input(address, DType::Bf16, T * H));
            args.norm_out = output(address, 0);
        }),
        ErrorKind::Overlap { .. },
        "`norm_out` overlaps `shared`",
        "declare the parameter `mut`"
    );
}

#[test]
fn neighbours_do_not_overlap() {
    // What lies past the tokens is padding, which nobody touches.
    let mut memory = vec![0u128; T * H];
    let address = memory.as_mut_ptr() as u64;
    let mut rest = Memory::new();
    let mut args = rest.args();
    (args.sum_out, args.norm_out) = (output(address, H), output(address + (T * H * 2) as u64, H));
    kernel(&options()).launch(Queue::host(), args).unwrap();
}

#[test]
fn too_many_tokens() {
    assert_error!(
        launch(|args| args.tokens = T + 1),
        ErrorKind::TooManyTokens { max_tokens: T, got: 4 },
        "4 tokens",
        "at most 3",
        "`Prepare::new`"
    );
}

#[test]
fn a_variant_that_was_not_prepared() {
    let kernel = kernel(&options().variants(&[&[], &["shared"]]));
    let mut memory = Memory::new();
    let mut args = memory.args();
    args.weights = None;
    assert_error!(
        kernel.launch(Queue::host(), args).unwrap_err(),
        ErrorKind::Variant { .. },
        "no `weights`",
        "prepared for every optional input, or no `shared`",
        "`Prepare::variants`"
    );
    let mut args = memory.args();
    args.shared = None;
    kernel.launch(Queue::host(), args).unwrap();
    assert!(memory.sum_out.iter().all(|x| x.to_f32() == 1.0));
}

#[test]
fn variants_by_wrong_names() {
    assert_error!(
        prepare(&options().variants(&[&["gamma"]])),
        ErrorKind::UnknownVariant { .. },
        "`gamma` is not an optional input",
        "`weights`, `shared`"
    );
}

#[test]
fn more_variants_than_are_compiled_unasked() {
    let rank = &Group::reference(1).unwrap()[0];
    assert_error!(
        Optional::prepare(rank, &Prepare::new(1)).unwrap_err(),
        ErrorKind::TooManyVariants { optional: 3, variants: 8, .. },
        "`a`, `b`, `c`",
        "`Prepare::variants`"
    );
    assert_eq!(
        Optional::prepare(rank, &Prepare::new(1).variants(&[&["a", "c"]])).unwrap().variants().len(),
        1
    );
}

#[test]
fn dims_that_do_not_fit() {
    let unbound = Prepare::new(T).top_k(4);
    assert_error!(prepare(&unbound), ErrorKind::Bind(_), "`hidden` of `seam` is not bound", "`.hidden(…)`");
    assert_error!(prepare(&options().hidden(0)), ErrorKind::Bind(_), "`hidden`", "is 0", "1..=65536");
    assert_error!(prepare(&options().hidden(65_537)), ErrorKind::Bind(_), "65537");
    assert_error!(prepare(&options().top_k(0)), ErrorKind::Bind(_), "`top_k`", "is 0", "1..=64");
    assert_error!(prepare(&options().dtype(DType::F16)), ErrorKind::Bind(_), "fixed to bf16", "got f16");
    assert_error!(
        prepare(&Prepare::new(0).hidden(8).top_k(1)),
        ErrorKind::MaxTokens { got: 0, .. },
        "`max_tokens` is 0"
    );
    assert_error!(prepare(&options().exchange_tokens(0)), ErrorKind::ExchangeTokens { got: 0, .. }, "is 0");
}

#[test]
fn groups_of_no_ranks_or_too_many() {
    for got in [0, 9] {
        assert_error!(Group::reference(got).unwrap_err(), ErrorKind::GroupSize { .. }, "must have 1 to 8");
    }
}

/// Two ranks' kernels, their memory, and a launch that `change` may spoil.
fn launch_all(
    kernels: &[Kernel<Seam>],
    change: impl for<'a> FnOnce(&mut Vec<SeamArgs<'a>>),
) -> Result<(), Error> {
    let mut memories: Vec<_> = kernels.iter().map(|_| Memory::new()).collect();
    let mut args: Vec<_> = memories.iter_mut().map(Memory::args).collect();
    change(&mut args);
    let result = seamline::launch_all(kernels, [Queue::host()], args);
    let stored = memories.iter().flat_map(|m| &m.sum_out).any(|x| x.to_f32() != 1.0);
    assert_eq!(stored, result.is_ok(), "a refused launch ran, or one that was not did not");
    result
}

#[test]
fn one_rank_of_many_cannot_run_alone_on_a_host() {
    let kernels = Seam::prepare_all(&Group::reference(2).unwrap(), &options()).unwrap();
    let error = kernels[0].launch(Queue::host(), Memory::new().args()).unwrap_err();
    assert_error!(error, ErrorKind::NeedsLaunchAll { ranks: 2, .. }, "use `launch_all`");
    launch_all(&kernels, |_| ()).unwrap();
}

#[test]
fn kernels_of_another_group() {
    let prepared = || Seam::prepare_all(&Group::reference(2).unwrap(), &options()).unwrap();
    let (first, second) = (prepared(), prepared());
    let mixed = [first[0].clone(), second[1].clone()];
    assert_error!(
        launch_all(&mixed, |_| ()).unwrap_err(),
        ErrorKind::OtherGroup { at: 1, got_rank: 1, .. },
        "kernel 1 is rank 1 of another group"
    );
    let swapped = [first[1].clone(), first[0].clone()];
    assert_error!(
        launch_all(&swapped, |_| ()).unwrap_err(),
        ErrorKind::OtherGroup { at: 0, .. },
        "in rank order"
    );
    assert_error!(
        launch_all(&first[..1], |_| ()).unwrap_err(),
        ErrorKind::Count { what: "kernels", expected: 2, got: 1 },
        "got 1 kernels for a group of 2 ranks"
    );
}

#[test]
fn kernels_that_were_prepared_apart() {
    let ranks = Group::reference(2).unwrap();
    let few = Seam::prepare_all(&ranks, &options()).unwrap();
    let many = Seam::prepare_all(&ranks, &options().exchange_tokens(2).variants(&[&[]])).unwrap();
    let mixed = [few[0].clone(), many[1].clone()];
    assert_error!(
        launch_all(&mixed, |_| ()).unwrap_err(),
        ErrorKind::OtherKernel { at: 1, .. },
        "kernel 1 was prepared with another set of variants"
    );
}

#[test]
fn ranks_that_launch_different_tokens() {
    let kernels = Seam::prepare_all(&Group::reference(2).unwrap(), &options()).unwrap();
    assert_error!(
        launch_all(&kernels, |args| args[1].tokens = 2).unwrap_err(),
        ErrorKind::TokensDiffer { rank: 1, expected: 3, got: 2 },
        "rank 1 launches 2 tokens, and rank 0 3"
    );
}

#[test]
fn not_one_bundle_per_rank() {
    let kernels = Seam::prepare_all(&Group::reference(2).unwrap(), &options()).unwrap();
    assert_error!(
        launch_all(&kernels, |args| args.truncate(1)).unwrap_err(),
        ErrorKind::Count { what: "bundles", .. },
        "got 1 bundles"
    );
}

#[test]
fn not_all_ranks_of_a_group() {
    let ranks = Group::reference(3).unwrap();
    let error = Seam::prepare_all(&ranks[..2], &options()).unwrap_err();
    assert_error!(error, ErrorKind::Count { what: "ranks", expected: 3, got: 2 }, "got 2 ranks");
    assert_error!(seamline::reset(&ranks[1..]).unwrap_err(), ErrorKind::Count { .. }, "one per rank");
    assert_error!(seamline::reset(&[]).unwrap_err(), ErrorKind::Count { got: 0, .. }, "got 0 ranks");
}
