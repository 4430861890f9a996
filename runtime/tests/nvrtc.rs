//! The compiler, where there is one. It needs no GPU.
#![cfg(feature = "cuda")]

use seamline_codegen::emit::{Target, emit};
use seamline_codegen::schedule::{DeviceModel, Planner};
use seamline_codegen::{
    DType, Dims, Elem, Fixed, Graph, Node, Op, Operation, Output, Param, ParamId, Presence, Request, Role,
    ValueId,
};
use seamline_runtime::cuda::{__private::locate, nvrtc};
use seamline_runtime::{ErrorKind, testing};
use std::sync::{Mutex, MutexGuard};

/// Skips aloud where there is no NVRTC. Tests that count compilations run one by one.
fn compiler() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    match locate::nvrtc() {
        Ok(_) => Some(ONE.lock().unwrap_or_else(|e| e.into_inner())),
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            None
        }
    }
}

/// `norm_out = rms_norm(all_reduce(x), w, eps)`
fn source(hidden: u32) -> (String, Vec<String>) {
    let param = |name: &'static str, role| Param { name: name.into(), role, optional: false, in_place: None };
    let node = |op| Node { op, name: None };
    let [x, w, eps, sum] = [0, 1, 2, 3].map(ValueId);
    let graph = Graph {
        name: "norm".into(),
        params: vec![
            param("x", Role::Tokens(Elem::Pattern)),
            param("w", Role::Channels(Elem::Pattern)),
            param("eps", Role::Scalar),
        ]
        .into(),
        nodes: vec![
            node(Op::Param(ParamId(0))),
            node(Op::Param(ParamId(1))),
            node(Op::Param(ParamId(2))),
            node(Op::call(Operation::AllReduce, &[x.into()])),
            node(Op::call(Operation::RmsNorm, &[sum.into(), w.into(), eps.into()])),
        ]
        .into(),
        outputs: vec![Output {
            name: "norm_out".into(),
            value: ValueId(4),
            role: Role::Tokens(Elem::Pattern),
            in_place: None,
        }]
        .into(),
        fixed: Fixed::default(),
    };
    let request = Request { hidden: Some(hidden), top_k: None, dtype: Some(DType::Bf16), ranks: 2 };
    let program = graph.bind(&Dims::bind(&graph, &request, Presence::ALL).unwrap()).unwrap();
    let geometries = Planner::new(&program, DeviceModel::H200, 1, false).geometries(4);
    let module = emit(&program, &Target { geometries, early_trigger: false, one_grid: true });
    (module.cuda(), module.entries.iter().map(|e| e.name.clone()).collect())
}

#[test]
fn every_architecture_compiles_and_tells_what_it_uses() {
    let Some(_one) = compiler() else { return };
    let (source, entries) = source(1024);
    for arch in ["sm_90a", "sm_100a", "sm_120"] {
        let compiled = nvrtc::compile(&source, arch).unwrap();
        assert_eq!(compiled.cubin[..4], *b"\x7fELF");
        let mut names: Vec<_> = compiled.entries.iter().map(|u| u.entry.clone()).collect();
        names.sort();
        let mut expected = entries.clone();
        expected.sort();
        assert_eq!(names, expected, "{}", compiled.log);
        for usage in &compiled.entries {
            assert!((8..=255).contains(&usage.registers) && usage.shared > 0, "{arch}: {usage:?}");
        }
    }
}

#[test]
fn the_same_source_is_compiled_once() {
    let Some(_one) = compiler() else { return };
    let (source, _) = source(512);
    let before = testing::compile_count();
    let first = nvrtc::compile(&source, "sm_90a").unwrap();
    let threads: Vec<_> = std::thread::scope(|scope| {
        let compile = || scope.spawn(|| nvrtc::compile(&source, "sm_90a").unwrap());
        [compile(), compile(), compile()].into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(threads.iter().all(|other| std::sync::Arc::ptr_eq(&first, other)));
    assert_eq!(testing::compile_count(), before + 1);
}

#[test]
fn an_error_shows_the_lines_around_it() {
    let Some(_one) = compiler() else { return };
    let (source, _) = source(256);
    let broken = format!(
        "{source}#line 1 \"pattern broken\"\nextern \"C\" __global__ void k(int* p) {{\n  *p = undefined_name;\n}}\n"
    );
    let error = nvrtc::compile(&broken, "sm_90a").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Compile { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("did not compile for sm_90a"), "{text}");
    assert!(text.contains(">    2 |   *p = undefined_name;"), "{text}");
    assert!(text.lines().count() < 12, "an excerpt, not the source: {text}");
}

#[test]
fn an_architecture_that_is_not_real_or_not_known_is_refused() {
    let Some(_one) = compiler() else { return };
    for arch in ["compute_90", "sm_999", "90"] {
        let error = nvrtc::compile("extern \"C\" __global__ void k() {}", arch).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::OldNvrtc { .. }), "{error}");
        assert!(error.to_string().contains("sm_90"), "{error}");
    }
}
