//! What `#[fused_pattern]` generates, for patterns of every kind.

#[path = "ui/pass/mod.rs"]
mod pass;

use pass::*;
use seamline::__private::{Arg, ArgList};
use seamline::prelude::*;
use seamline::{Bundle, Graph};
use seamline_codegen::check::check;
use seamline_codegen::parse::parse_file;

/// A file's name and text, and the graphs that the macro made of it.
macro_rules! files {
    ($($file:ident: $graphs:expr;)*) => {
        [$((stringify!($file), include_str!(concat!("ui/pass/", stringify!($file), ".rs")), $graphs.to_vec())),*]
    };
}

fn files() -> impl IntoIterator<Item = (&'static str, &'static str, Vec<&'static Graph>)> {
    files! {
        arithmetic: [arithmetic::Pairs::GRAPH, arithmetic::Literals::GRAPH];
        dtypes: [dtypes::Mixed::GRAPH];
        gemma: [gemma::GemmaSandwich::GRAPH, gemma::NormThenReduce::GRAPH, gemma::Unweighted::GRAPH];
        in_place: [in_place::AddAssign::GRAPH, in_place::Assign::GRAPH, in_place::Both::GRAPH];
        moe_finalize: [moe_finalize::MoeFinalizeArResidualRmsnorm::GRAPH];
        optional: [
            optional::EitherSide::GRAPH,
            optional::UnweightedFinalize::GRAPH,
            optional::OptionalOfTheSameShape::GRAPH,
        ];
        paths: [paths::Qualified::GRAPH];
        plain: [plain::NoResidual::GRAPH, plain::NoNorm::GRAPH, plain::Add::GRAPH, plain::Shadowed::GRAPH];
        renamed: [renamed::ByRelativePath::GRAPH, renamed::ByAbsolutePath::GRAPH];
        unbound: [unbound::Unbound::GRAPH];
        visibility: visibility::GRAPHS;
        wire: [wire::F32Wire::GRAPH];
    }
}

#[test]
fn the_constant_is_what_the_command_parses() {
    for (file, source, graphs) in files() {
        let parsed = parse_file(source).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert_eq!(parsed.iter().collect::<Vec<_>>(), graphs, "{file}");
    }
}

#[test]
fn the_constant_passes_the_checks() {
    for (file, _, graphs) in files() {
        for graph in graphs {
            assert!(check(graph).is_ok(), "{file}: {}", graph.name);
        }
    }
}

#[test]
fn every_file_is_compared() {
    let compared = files().into_iter().map(|(file, ..)| file).collect::<Vec<_>>();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui/pass");
    for entry in folder.read_dir().expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        let name = path.file_stem().and_then(|n| n.to_str()).expect("names are UTF-8").to_owned();
        // `cfg` is the compiler's: the command reads `attributes.rs` as it stands.
        assert!(
            compared.contains(&name.as_str()) || ["mod", "attributes"].contains(&name.as_str()),
            "{name}"
        );
    }
}

fn collected<'a>(bundle: impl Bundle<'a>) -> ArgList<'a> {
    let mut list = ArgList::new();
    bundle.collect(&mut list);
    list
}

/// A letter per argument: input, absent, scalar, output, in place.
fn kinds(list: &ArgList) -> String {
    let letter = |arg: &Arg| match arg {
        Arg::Input(_) => 'i',
        Arg::Absent => 'a',
        Arg::Scalar(_) => 's',
        Arg::Output(_) => 'o',
        Arg::InPlace(_) => 'p',
    };
    list.iter().map(letter).collect()
}

#[test]
fn arguments_are_in_the_order_of_the_signature_then_the_results() {
    // A length for each argument, by which its place in the list shows.
    let inputs = [1001, 1002, 1003, 1004, 1005, 1006].map(|n| vec![bf16::ONE; n]);
    let [gemm2_out, map, weights, shared, residual, gamma] = &inputs;
    let (mut residual_out, mut norm_out) = (vec![bf16::ONE; 1007], vec![bf16::ONE; 1008]);
    let list = collected(moe_finalize::MoeFinalizeArResidualRmsnormArgs {
        tokens: 1,
        gemm2_out: gemm2_out.into(),
        expanded_idx_to_permuted_idx: map.into(),
        expert_scale_factor: weights.into(),
        shared_expert_output: Some(shared.into()),
        residual_in: residual.into(),
        rms_gamma: gamma.into(),
        eps: 0.25,
        residual_out: (&mut residual_out).into(),
        norm_out: (&mut norm_out).into(),
    });
    assert_eq!(kinds(&list), "iiiiiisoo");
    let tensors = list.iter().filter(|arg| !matches!(arg, Arg::Scalar(_)));
    for (arg, len) in tensors.zip(1001..) {
        assert!(format!("{arg:?}").contains(&len.to_string()), "{arg:?} has not {len} elements");
    }
    assert!(matches!(list[6], Arg::Scalar(eps) if eps == 0.25));
}

#[test]
fn an_absent_input_keeps_its_place() {
    let x = [0f32; 8];
    let (mut right, mut sum) = ([0f32; 8], [0f32; 8]);
    let list = collected(optional::EitherSideArgs {
        tokens: 1,
        x: x.as_slice().into(),
        a: None,
        b: Some(x.as_slice().into()),
        bias: None,
        offset: None,
        right: right.as_mut_slice().into(),
        sum: sum.as_mut_slice().into(),
    });
    assert_eq!(kinds(&list), "iaiaaoo");
}

#[test]
fn an_update_in_place_is_one_argument() {
    let x = [0f32; 8];
    let (mut residual, mut norm_out) = ([0f32; 8], [0f32; 8]);
    let list = collected(in_place::AddAssignArgs {
        tokens: 1,
        residual: residual.as_mut_slice().into(),
        x: x.as_slice().into(),
        w: x.as_slice().into(),
        eps: 1e-6,
        norm_out: norm_out.as_mut_slice().into(),
    });
    assert_eq!(kinds(&list), "piiso");
}

#[test]
fn fields_are_as_visible_as_the_fn() {
    assert_eq!(visibility::tokens_of_the_parent(&[0.0; 6], &mut [0.0; 6]), 3);
}

#[test]
fn raw_names_are_fields() {
    let x = [0f32; 8];
    let mut out = [0f32; 8];
    let list = collected(attributes::PresentArgs {
        tokens: 1,
        r#in: x.as_slice().into(),
        into: x.as_slice().into(),
        list: x.as_slice().into(),
        r#type: out.as_mut_slice().into(),
    });
    assert_eq!(kinds(&list), "iiio");
}
