//! Arguments that a launch refuses.

use super::support::*;
use seamline::ErrorKind;
use seamline::prelude::*;

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
        launch(|args| args.map = input(address + 2, DType::I32, T * K)),
        ErrorKind::Misaligned { expected: 4, .. },
        "`map` begins at",
        "multiple of 4 bytes"
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
fn addresses_where_nothing_can_be() {
    assert_error!(
        launch(|args| args.norm_out = output(0, 0)),
        ErrorKind::Address { address: 0, .. },
        "`norm_out` is 192 elements at 0x0"
    );
    assert_error!(
        launch(|args| args.rows = input(u64::MAX - 15, DType::Bf16, P * H)),
        ErrorKind::Address { .. },
        "`rows` is 448 elements at 0xfffffffffffffff0",
        "give the address of the tensor's first element"
    );
    assert_error!(
        launch(|args| args.rows = input(16, DType::Bf16, usize::MAX)),
        ErrorKind::Address { .. },
        "`rows` is 18446744073709551615 elements"
    );
    // Of no elements nothing is asked, nor for no tokens.
    let mut memory = Memory::new();
    let mut args = memory.args();
    args.rows = input(0, DType::Bf16, 0);
    kernel(&options()).launch(Queue::host(), args).unwrap();
    let mut args = memory.args();
    (args.tokens, args.norm_out) = (0, output(0, 0));
    kernel(&options()).launch(Queue::host(), args).unwrap();
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
        ErrorKind::TooManyTokens { max_tokens: T, got: 4, .. },
        "4 tokens",
        "at most 3",
        "`Prepare::new`"
    );
}
