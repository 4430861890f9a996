//! Token streams near a pattern give a graph that can be generated, or messages: nothing panics.
//!
//! `SEAMLINE_FUZZ_SEEDS=123` tries one seed again, `SEAMLINE_FUZZ_SEEDS=10000..90000` others than a test run does.
#![cfg(all(feature = "parse", feature = "emit"))]

use fastrand::Rng;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;
use seamline_codegen::emit::{Target, emit};
use seamline_codegen::parse::{constant, parse, parse_file};
use seamline_codegen::schedule::{DeviceModel, Planner};
use seamline_codegen::{DType, Dims, Graph, Presence, Request};
use std::ops::Range;
use std::thread;

const SEEDS: Range<u64> = 0..5000;

const PATTERNS: [&str; 3] = [
    "#[fused_pattern(hidden = 7168, top_k = 8, dtype = bf16)]
    /// A seam.
    pub fn moe(
        rows: Permuted, map: RowMap, weights: Option<ExpertWeights<f32>>, shared: Option<Tokens>, residual_in: Tokens,
        gamma: Channels, eps: Scalar,
    ) -> (Tokens, Tokens) {
        let local = finalize(rows, map, weights) + shared;
        let residual_out = all_reduce(local) + residual_in;
        let norm_out = rms_norm(residual_out, gamma, eps);
        (residual_out, norm_out)
    }",
    "#[fused_pattern(dtype = f16, wire = f32, ranks = 2)]
    fn sandwich(x: Tokens<bf16>, mut r: Tokens, a: Channels<f32>, gate: PerToken, s: Scalar) -> (Tokens, Tokens<f32>) {
        let mut y = rms_norm(all_reduce(-x * gate), 1.0 + a, 1e-6);
        y += x - 0.5 * s;
        r += y;
        let z = rms_norm(r, 1.0 + a, s);
        (r, z)
    }",
    "#[fused_pattern]
    pub(crate) fn alone(x: Tokens, bias: Option<Channels>, y: seamline::dsl::Tokens) -> Tokens {
        let z = (x + bias) * (y - (2 * x)); z
    }",
];

/// What else may stand in Rust source.
const WORDS: &str = "fn let mut pub crate self Self super const static if else match loop while for return async await unsafe move
    dyn impl where ref type struct use as in break true false _ tokens x eps Tokens Option f32 bf16 f16 i32 all_reduce rms_norm
    finalize seamline r#fn é 'a 'b' \"s\" b\"s\" 0 1 1.0 1. 1e-6 1e-60 1e60 1e9999 0x10 1u8 1.0f64 1_0 4294967296
    + - * / % ! & | = += -= == < > <= => -> .. ..= . , ; : :: ? @ # $ # [cfg(x)] #[doc = \"d\"] () [] {} (x) [x] {x} (x,)
    a!() |x| <'a, T>";

fn tokens(text: &str) -> Vec<TokenTree> {
    text.parse::<TokenStream>().expect("the text is tokens").into_iter().collect()
}

/// All trees in `tokens`, groups and what is in them.
fn trees(tokens: TokenStream) -> Vec<TokenTree> {
    let inside = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => trees(group.stream()),
        _ => Vec::new(),
    };
    tokens.into_iter().flat_map(|tree| inside(&tree).into_iter().chain([tree]).collect::<Vec<_>>()).collect()
}

/// Changes something, anywhere.
fn mutate(rng: &mut Rng, tokens: TokenStream, words: &[TokenTree]) -> TokenStream {
    let mut trees = tokens.into_iter().collect::<Vec<_>>();
    let groups = trees.iter().enumerate().filter(|(_, tree)| matches!(tree, TokenTree::Group(_)));
    let groups = groups.map(|(i, _)| i).collect::<Vec<_>>();
    if let Some(i) = rng.choice(groups).filter(|_| rng.u8(..4) > 0)
        && let TokenTree::Group(group) = &trees[i]
    {
        let inside = mutate(rng, group.stream(), words);
        trees[i] = TokenTree::Group(Group::new(group.delimiter(), inside));
        return trees.into_iter().collect();
    }
    let word = rng.choice(words).expect("there are words").clone();
    let at = rng.usize(..=trees.len());
    let Some(tree) = trees.get(at).cloned() else {
        trees.push(word);
        return trees.into_iter().collect();
    };
    match rng.u8(..6) {
        0 => trees[at] = word,
        1 => trees.insert(at, word),
        2 => trees.insert(at, tree),
        3 => {
            let other = rng.usize(..trees.len());
            trees.swap(at, other);
        }
        4 => {
            let delimiters = [Delimiter::Parenthesis, Delimiter::Brace, Delimiter::Bracket, Delimiter::None];
            let delimiter = rng.choice(delimiters).expect("there are delimiters");
            let to = rng.usize(at..=trees.len());
            let inside = trees.drain(at..to).collect();
            trees.insert(at, TokenTree::Group(Group::new(delimiter, inside)));
        }
        _ => match &tree {
            TokenTree::Group(group) if rng.bool() => {
                trees.splice(at..=at, group.stream());
            }
            _ => {
                trees.remove(at);
            }
        },
    }
    trees.into_iter().collect()
}

/// What a graph without a complaint leads to.
fn generate(rng: &mut Rng, graph: &Graph) {
    let present = rng.choice(Presence::variants(graph)).expect("there is a variant");
    let request = Request {
        hidden: graph.fixed.hidden.or(rng.choice([1, 260, 65_536])),
        top_k: graph.fixed.top_k.or(rng.choice([1, 64])),
        dtype: graph.fixed.dtype.or(rng.choice(DType::FLOATS)),
        ranks: graph.fixed.ranks.unwrap_or(rng.u32(1..=8)),
    };
    let program = Dims::bind(graph, &request, present).and_then(|dims| graph.bind(&dims));
    let program = program.unwrap_or_else(|e| panic!("{e}: {graph:?}"));
    let geometries = Planner::new(&program, DeviceModel::H200, 1, true).geometries(rng.u64(1..=u64::MAX));
    emit(&program, &Target { geometries, early_trigger: true, one_grid: true }).cuda();
}

/// Whether the pattern of `seed` is valid.
fn attempt(seed: u64, words: &[TokenTree]) -> bool {
    let mut rng = Rng::with_seed(seed);
    let source = rng.choice(PATTERNS).expect("there are patterns");
    let mut stream = source.parse::<TokenStream>().expect("the pattern is tokens");
    for _ in 0..rng.choice([1, 1, 2, 5]).expect("there are numbers") {
        stream = mutate(&mut rng, stream, words);
    }
    let text = stream.to_string();
    let _replay = Replay(seed, &text);
    // As the command does, whose messages show places.
    let file = parse_file(&text).map_err(|e| e.to_string());
    // As the macro does, with what is behind the attribute, if that is still there.
    let mut trees = stream.into_iter().collect::<Vec<_>>();
    let attr = match trees.get(1) {
        Some(TokenTree::Group(group)) => {
            let attribute = group.stream().into_iter().nth(1);
            trees.drain(..2);
            match attribute {
                Some(TokenTree::Group(options)) => options.stream(),
                _ => TokenStream::new(),
            }
        }
        _ => TokenStream::new(),
    };
    if let Ok(parsed) = parse(attr, trees.into_iter().collect()) {
        for reported in &parsed.diagnostics {
            reported.to_compile_error();
        }
        constant(&parsed.graph, &quote!(seamline::__private));
    }
    let graphs = file.unwrap_or_default();
    graphs.iter().for_each(|graph| generate(&mut rng, graph));
    !graphs.is_empty()
}

/// Says what it was that panicked.
struct Replay<'a>(u64, &'a str);

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("SEAMLINE_FUZZ_SEEDS={}\n{}", self.0, self.1);
        }
    }
}

fn seeds() -> Range<u64> {
    let Ok(chosen) = std::env::var("SEAMLINE_FUZZ_SEEDS") else { return SEEDS };
    let number =
        |text: &str| text.parse::<u64>().unwrap_or_else(|e| panic!("SEAMLINE_FUZZ_SEEDS={chosen}: {e}"));
    match chosen.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => number(&chosen)..number(&chosen) + 1,
    }
}

#[test]
fn what_is_nearly_a_pattern_gives_a_kernel_or_messages() {
    let words =
        tokens(WORDS).into_iter().chain(PATTERNS.iter().flat_map(|p| trees(tokens(p).into_iter().collect())));
    let words = words.collect::<Vec<_>>();
    let seeds = seeds();
    let valid = seeds.clone().filter(|&seed| attempt(seed, &words)).count();
    let streams = seeds.end - seeds.start;
    println!("{streams} token streams, {valid} of them patterns");
    if seeds == SEEDS {
        assert_eq!(streams, 5000);
        assert!(
            (streams as usize / 50..streams as usize / 2).contains(&valid),
            "{valid} of them are patterns"
        );
    }
}
