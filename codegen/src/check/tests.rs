use super::*;
use crate::{Elem, Fixed, Node, Op, Operation, Output, Param, Role};

fn param(name: &'static str, role: Role) -> Param {
    Param { name: name.into(), role, optional: false, in_place: None }
}

/// `fn p(x: Tokens, w: Channels, eps: Scalar) -> Tokens` with this body, returning its last value.
fn graph(body: &[Op]) -> Graph {
    let params = vec![
        param("x", Role::Tokens(Elem::Pattern)),
        param("w", Role::Channels(Elem::Pattern)),
        param("eps", Role::Scalar),
    ];
    let reads = (0..3).map(|i| Op::Param(ParamId(i)));
    let nodes = reads.chain(body.iter().copied()).map(|op| Node { op, name: None }).collect::<Vec<_>>();
    let value = ValueId(nodes.len() as u32 - 1);
    let output = Output { name: "out".into(), value, role: Role::Tokens(Elem::Pattern), in_place: None };
    Graph {
        name: "p".into(),
        params: params.into(),
        nodes: nodes.into(),
        outputs: vec![output].into(),
        fixed: Fixed::default(),
    }
}

const X: ValueId = ValueId(0);
const W: ValueId = ValueId(1);
const EPS: ValueId = ValueId(2);
const FIRST: ValueId = ValueId(3);

fn names(graph: &Graph) -> Vec<&'static str> {
    check(graph).err().into_iter().flatten().map(|p| p.kind.name()).collect()
}

#[test]
fn norm_of_a_sum_over_ranks_is_fine() {
    let graph = graph(&[
        Op::call(Operation::AllReduce, &[X.into()]),
        Op::call(Operation::RmsNorm, &[FIRST.into(), W.into(), EPS.into()]),
    ]);
    let facts = check(&graph).expect("the graph is well typed");
    assert_eq!(facts[W.0 as usize].space, Space::Channel);
    assert_eq!(facts[X.0 as usize].after, None);
    assert_eq!(facts.last().map(|f| (f.space, f.after)), Some((Space::TokenChannel, Some(FIRST))));
}

#[test]
fn a_collective_of_a_collective_is_named_as_such() {
    let graph = graph(&[
        Op::call(Operation::AllReduce, &[X.into()]),
        Op::call(Operation::RmsNorm, &[FIRST.into(), W.into(), EPS.into()]),
        Op::call(Operation::AllReduce, &[ValueId(4).into()]),
    ]);
    let problems = check(&graph).expect_err("two collectives");
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].at, At::Value(ValueId(5)));
    assert_eq!(problems[0].kind.name(), "DependentCollectives");
}

#[test]
fn one_mistake_gives_one_problem() {
    // The norm of [H] is wrong; what is made of it is not.
    let graph = graph(&[Op::call(Operation::RmsNorm, &[W.into(), W.into(), EPS.into()]), Op::Add(FIRST, X)]);
    assert_eq!(names(&graph), ["OperandShape"]);
}

#[test]
fn what_feeds_an_unused_value_is_not_reported() {
    let graph = graph(&[Op::Neg(X), Op::Mul(FIRST, W), Op::Add(X, EPS)]);
    let problems = check(&graph).expect_err("an unused product");
    assert_eq!(problems.iter().map(|p| p.at).collect::<Vec<_>>(), [At::Value(ValueId(4))]);
}

#[test]
fn an_option_must_not_decide_the_shape() {
    let mut graph = graph(&[Op::Add(W, X), Op::Mul(FIRST, EPS)]);
    graph.params.to_mut()[0].optional = true;
    assert_eq!(names(&graph), ["OptionalWidens"]);
}

#[test]
fn a_call_by_hand_has_the_operands_of_its_operation() {
    for call in [
        Op::call(Operation::RmsNorm, &[X.into(), W.into()]),
        Op::call(Operation::AllReduce, &[ParamId(0).into()]),
        Op::Result(X, 0),
    ] {
        assert_eq!(names(&graph(&[call])), ["Malformed"], "{call:?}");
    }
}

/// Adds `x += …` to the graph: its last value, written in place of `x`.
fn in_place(body: &[Op]) -> Graph {
    let mut graph = graph(body);
    graph.params.to_mut()[0].in_place = Some(OutputId(0));
    let output = &mut graph.outputs.to_mut()[0];
    (output.name, output.in_place) = ("x".into(), Some(ParamId(0)));
    graph
}

#[test]
fn a_graph_made_by_hand_is_refused_and_does_not_panic() {
    type Spoil = fn(&mut Graph);
    let norm = [Op::call(Operation::RmsNorm, &[X.into(), W.into(), EPS.into()])];
    let spoilt: [(Spoil, &str); 12] = [
        (|g| g.name = "p\n} while (0);".into(), "is not a name"),
        (|g| g.nodes.to_mut()[3].name = Some("a\\".into()), "is not a name"),
        (|g| g.nodes.to_mut()[3].op = Op::Neg(ValueId(99)), "value 3 reads value 99"),
        (|g| g.nodes.to_mut()[3].op = Op::Neg(FIRST), "value 3 reads value 3"),
        (|g| g.nodes.to_mut()[0].op = Op::Param(ParamId(3)), "value 0 reads parameter 3 of 3"),
        (|g| g.nodes.to_mut()[1].op = Op::Param(ParamId(0)), "value 1 is parameter 0 again"),
        (|g| g.outputs.to_mut()[0].value = ValueId(4), "`x` is value 4 of 4"),
        (|g| g.outputs.to_mut()[0].in_place = None, "`x` names an output that is not written in its place"),
        (|g| g.outputs.to_mut()[0].in_place = Some(ParamId(9)), "a parameter that does not name it"),
        (|g| g.params.to_mut()[0].in_place = None, "`x` is written in place of a parameter"),
        (|g| g.params.to_mut()[0].in_place = Some(OutputId(9)), "`x` names an output"),
        (|g| g.outputs = Vec::new().into(), "it returns nothing"),
    ];
    check(&in_place(&norm)).expect("the graph is well formed");
    for (spoil, expected) in spoilt {
        let mut graph = in_place(&norm);
        spoil(&mut graph);
        let problems = check(&graph).expect_err(expected);
        assert!(problems.iter().any(|p| p.kind.to_string().contains(expected)), "{expected}: {problems:?}");
        assert!(problems.iter().all(|p| p.kind.name() == "Malformed"), "{problems:?}");
    }
}

#[test]
fn what_is_updated_in_place_has_one_dtype_and_is_tokens() {
    let mut graph = in_place(&[Op::call(Operation::RmsNorm, &[X.into(), W.into(), EPS.into()])]);
    graph.outputs.to_mut()[0].role = Role::Tokens(Elem::Fixed(crate::DType::F32));
    assert_eq!(names(&graph), ["InPlaceDType"]);
    graph.params.to_mut()[0].role = Role::PerToken(Elem::Pattern);
    assert!(names(&graph).contains(&"InPlaceType"));
}
