//! Which pattern, and bound to what.

use crate::Usage;
use anyhow::{Context, Result};
use clap::Args;
use seamline::{DType, Graph};
use seamline_codegen::parse::parse_file;
use seamline_codegen::{Dims, ParamId, Presence, Program, Request};
use std::path::PathBuf;

/// The arguments that say where patterns are, which are meant, and what their dims are.
#[derive(Args)]
pub struct Source {
    /// A Rust source file with patterns; without one, the ready-made patterns
    file: Option<PathBuf>,
    /// The pattern's name, where there are several
    #[arg(long, short)]
    pattern: Option<String>,
    /// A dim that the attribute leaves open: hidden=4096, top_k=8, dtype=bf16
    #[arg(long, value_name = "DIM=VALUE", num_args = 1.., value_parser = parse_set)]
    set: Vec<Set>,
}

/// The arguments that choose one pattern and bind it.
#[derive(Args)]
pub struct Target {
    #[command(flatten)]
    source: Source,
    /// How many ranks exchange
    #[arg(long, short = 'n', default_value_t = 8)]
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

fn parse_set(text: &str) -> Result<Set, String> {
    let (dim, value) = text.split_once('=').ok_or("expected DIM=VALUE, as in hidden=4096")?;
    let number =
        || value.parse().map_err(|_| format!("`{dim}` is a whole number, as in {dim}=8, and got `{value}`"));
    match dim {
        "hidden" => Ok(Set::Hidden(number()?)),
        "top_k" => Ok(Set::TopK(number()?)),
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
    pub fn graphs(&self) -> Result<Vec<Graph>> {
        let (graphs, place) = self.all()?;
        Ok(match &self.pattern {
            None if graphs.is_empty() => return Err(none(&place).into()),
            None => graphs,
            Some(_) => vec![self.choose(graphs, &place)?],
        })
    }

    /// The dims that the command line gives, for `ranks` ranks.
    pub fn request(&self, graph: &Graph, ranks: u32) -> Request {
        let mut request = Request { ranks, ..Request::default() };
        for set in &self.set {
            match *set {
                Set::Hidden(hidden) => request.hidden = Some(hidden),
                Set::TopK(top_k) => request.top_k = Some(top_k),
                Set::DType(dtype) => request.dtype = Some(dtype),
            }
        }
        // What is asked first of a pattern is not which dtype.
        if graph.fixed.dtype.is_none() && request.dtype.is_none() {
            request.dtype = Some(DType::Bf16);
        }
        request
    }

    /// Every pattern there is, and where.
    fn all(&self) -> Result<(Vec<Graph>, String)> {
        Ok(match &self.file {
            None => {
                let ready_made = seamline::patterns::ALL.iter().map(|listed| listed.graph.clone());
                (ready_made.collect(), "the ready-made patterns".to_owned())
            }
            Some(file) => {
                let source = std::fs::read_to_string(file)
                    .map_err(|error| Usage(format!("cannot read {}: {error}", file.display())))?;
                let graphs = parse_file(&source)
                    .map_err(|errors| anyhow::anyhow!("{} cannot be compiled\n{errors}", file.display()))?;
                (graphs, format!("the patterns of {}", file.display()))
            }
        })
    }

    fn choose(&self, mut graphs: Vec<Graph>, place: &str) -> Result<Graph, Usage> {
        let names = graphs.iter().map(|g| g.name.as_ref()).collect::<Vec<_>>().join(", ");
        let at = match &self.pattern {
            None if graphs.is_empty() => return Err(none(place)),
            None if graphs.len() == 1 => 0,
            None => return Err(Usage(format!("{place} are several: choose one with --pattern: {names}"))),
            Some(name) => graphs
                .iter()
                .position(|graph| graph.name == *name)
                .ok_or_else(|| Usage(format!("no `{name}` among {place}: there are {names}")))?,
        };
        Ok(graphs.swap_remove(at))
    }
}

fn none(place: &str) -> Usage {
    Usage(format!("{place}: there are none, that is, no fn under #[fused_pattern]"))
}

/// What to write when a dim is missing or wrong.
pub const HINT: &str = "on the command line: --set hidden=7168 top_k=8 dtype=bf16 --ranks 8";

impl Target {
    /// The pattern that is meant.
    pub fn graph(&self) -> Result<Graph> {
        let (graphs, place) = self.source.all()?;
        Ok(self.source.choose(graphs, &place)?)
    }

    /// The pattern, bound to the dims that the command line gives.
    pub fn program(&self, graph: &Graph) -> Result<Program> {
        let request = self.source.request(graph, self.ranks);
        let absent = self.without.iter().map(|name| optional(graph, name)).collect::<Result<Vec<_>, _>>()?;
        let hint = |error: seamline_codegen::BindError| Usage(format!("{error}\n{HINT}"));
        let dims = Dims::bind(graph, &request, Presence::from_absent(absent)).map_err(hint)?;
        graph.bind(&dims).context("cannot bind the pattern")
    }
}

fn optional(graph: &Graph, name: &str) -> Result<ParamId, Usage> {
    let optional = || graph.params.iter().enumerate().filter(|(_, p)| p.optional);
    optional().find(|(_, p)| p.name == name).map(|(i, _)| ParamId(i as u32)).ok_or_else(|| {
        let names = optional().map(|(_, p)| p.name.as_ref()).collect::<Vec<_>>().join(", ");
        let there = if names.is_empty() { "it has none".to_owned() } else { format!("there are {names}") };
        Usage(format!("`{}` has no optional parameter `{name}`: {there}", graph.name))
    })
}
