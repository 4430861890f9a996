//! Which pattern, and bound to what.

use crate::Usage;
use crate::named::{Named, Patterns};
use anyhow::{Context, Result};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use seamline::{DType, Graph};
use seamline_codegen::schedule::{SCHEDULES, Schedule};
use seamline_codegen::{Dims, MAX_HIDDEN, MAX_RANKS, MAX_TOP_K, ParamId, Presence, Program, Request};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// What `--ranks` may be.
pub const RANKS: RangeInclusive<i64> = 1..=MAX_RANKS as i64;
/// What `--hidden` may be.
pub const HIDDEN: RangeInclusive<i64> = 1..=MAX_HIDDEN as i64;
/// What `--top-k` may be.
pub const TOP_K: RangeInclusive<i64> = 1..=MAX_TOP_K as i64;
/// The most tokens of a run, which the reference follows one by one.
pub const MOST_TOKENS: u64 = 65_536;

/// The arguments that say where patterns are, which are meant, and what their dims are.
#[derive(Args)]
pub struct Source {
    /// A Rust source file with patterns; without one, the ready-made patterns
    file: Option<PathBuf>,
    /// The pattern's name, where there are several; its path, where several have it: module::name
    #[arg(long, short, value_name = "NAME")]
    pattern: Option<String>,
    /// A dim that the attribute leaves open: hidden=4096, top_k=8, dtype=bf16; of several patterns, those take it that do
    #[arg(long, value_name = "DIM=VALUE", num_args = 1.., value_parser = parse_set)]
    set: Vec<Set>,
}

/// The arguments that choose one pattern and bind it.
#[derive(Args)]
pub struct Target {
    #[command(flatten)]
    source: Source,
    /// How many ranks exchange
    #[arg(long, short = 'n', default_value_t = 8, value_parser = clap::value_parser!(u32).range(RANKS))]
    pub ranks: u32,
    /// An optional parameter that is absent
    #[arg(long, value_name = "PARAM")]
    without: Vec<String>,
}

/// `--set`.
#[derive(Clone, Copy, Debug)]
enum Set {
    Hidden(u32),
    TopK(u32),
    DType(DType),
}

impl Set {
    fn is_fixed(&self, graph: &Graph) -> bool {
        match self {
            Set::Hidden(_) => graph.fixed.hidden.is_some(),
            Set::TopK(_) => graph.fixed.top_k.is_some(),
            Set::DType(_) => graph.fixed.dtype.is_some(),
        }
    }
}

fn parse_set(text: &str) -> Result<Set, String> {
    let (dim, value) = text.split_once('=').ok_or("expected DIM=VALUE, as in hidden=4096")?;
    let number = |max: u32| {
        let number = value.parse().ok().filter(|number| (1..=max).contains(number));
        number.ok_or_else(|| format!("`{dim}` is a whole number from 1 to {max}, and got `{value}`"))
    };
    match dim {
        "hidden" => Ok(Set::Hidden(number(MAX_HIDDEN)?)),
        "top_k" => Ok(Set::TopK(number(MAX_TOP_K)?)),
        "dtype" => {
            let dtype = DType::from_name(value).filter(|d| DType::FLOATS.contains(d));
            dtype.map(Set::DType).ok_or_else(|| format!("`dtype` is bf16, f16 or f32, and got `{value}`"))
        }
        "ranks" => Err("ranks are given as --ranks".to_owned()),
        _ => Err(format!("unknown dim `{dim}`: expected hidden, top_k or dtype")),
    }
}

impl Source {
    /// The patterns that are meant: the one that is named, or all that there are.
    pub fn patterns(&self) -> Result<Vec<Named>> {
        let patterns = Patterns::of(self.file.as_deref())?;
        Ok(match &self.pattern {
            Some(name) => vec![patterns.called(name)?],
            None => patterns.some()?,
        })
    }

    /// The pattern that is meant.
    fn pattern(&self) -> Result<Named> {
        let patterns = Patterns::of(self.file.as_deref())?;
        Ok(match &self.pattern {
            Some(name) => patterns.called(name)?,
            None => patterns.only()?,
        })
    }

    /// The dims that the command line gives to `graph`, one of `all` that are meant, for `ranks` ranks.
    pub fn request(&self, graph: &Graph, all: &[&Graph], ranks: u32) -> Result<Request, Usage> {
        let mut request = Request { ranks, ..Request::default() };
        // What all of them fix contradicts all of them.
        let is_given = |set: &&Set| !set.is_fixed(graph) || all.iter().all(|graph| set.is_fixed(graph));
        for set in self.set.iter().filter(is_given) {
            match *set {
                Set::Hidden(hidden) => once("hidden", &mut request.hidden, hidden)?,
                Set::TopK(top_k) => once("top_k", &mut request.top_k, top_k)?,
                Set::DType(dtype) => once("dtype", &mut request.dtype, dtype)?,
            }
        }
        // What is asked first of a pattern is not which dtype.
        if graph.fixed.dtype.is_none() && request.dtype.is_none() {
            request.dtype = Some(DType::Bf16);
        }
        Ok(request)
    }
}

/// As clap takes no option twice, so `--set` no dim.
fn once<T: Copy + Display>(dim: &str, slot: &mut Option<T>, value: T) -> Result<(), Usage> {
    match slot.replace(value) {
        None => Ok(()),
        Some(before) => {
            Err(Usage(format!("--set gives `{dim}` twice, as {before} and as {value}: give it once")))
        }
    }
}

/// What to write when a dim is missing or wrong.
pub const HINT: &str = "on the command line: --set hidden=7168 top_k=8 dtype=bf16 --ranks 8";

impl Target {
    /// The pattern that is meant.
    pub fn graph(&self) -> Result<Graph> {
        Ok(self.source.pattern()?.graph)
    }

    /// The pattern, bound to the dims that the command line gives.
    pub fn program(&self, graph: &Graph) -> Result<Program> {
        let request = self.source.request(graph, &[graph], self.ranks)?;
        let absent = self.without.iter().map(|name| optional(graph, name)).collect::<Result<Vec<_>, _>>()?;
        let hint = |error: seamline_codegen::BindError| Usage(format!("{error}\n{HINT}"));
        let dims = Dims::bind(graph, &request, Presence::from_absent(absent)).map_err(hint)?;
        graph.bind(&dims).context("cannot bind the pattern")
    }
}

/// What `--schedule` may be.
pub fn schedule_names() -> impl TypedValueParser<Value = Schedule> {
    let names = PossibleValuesParser::new(SCHEDULES.iter().map(|def| def.name));
    names.try_map(|name| Schedule::from_name(&name).ok_or("an unknown schedule"))
}

fn optional(graph: &Graph, name: &str) -> Result<ParamId, Usage> {
    let optional = || graph.params.iter().enumerate().filter(|(_, p)| p.optional);
    optional().find(|(_, p)| p.name == name).map(|(i, _)| ParamId(i as u32)).ok_or_else(|| {
        let names = optional().map(|(_, p)| p.name.as_ref()).collect::<Vec<_>>().join(", ");
        let there = if names.is_empty() { "it has none".to_owned() } else { format!("there are {names}") };
        Usage(format!("`{}` has no optional parameter `{name}`: {there}", graph.name))
    })
}
