//! What will be prepared: decided from the graph, the options and the group alone, before anything slow.

use crate::error::{Error, ErrorKind};
use crate::group::Rank;
use crate::options::Prepare;
use crate::region::RegionKey;
use crate::signature::{Argument, arguments};
use crate::variant::{Site, Variant, describe};
use seamline_codegen::check::check;
use seamline_codegen::schedule::{EXCHANGE_TOKENS, Schedule};
use seamline_codegen::{DType, Dims, Graph, ParamId, Presence, Program, Request};
use std::cmp::Reverse;
use std::time::Duration;

/// Tokens that a grid can have, a cluster of 8 each.
const MAX_TOKENS: usize = seamline_codegen::MAX_TOKENS as usize;
/// Optional inputs of which all variants are compiled unasked.
const FEW_OPTIONALS: usize = 2;

/// A kernel to be.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) graph: &'static Graph,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) variants: Vec<Variant>,
    pub(crate) max_tokens: usize,
    /// Tokens of one kernel; more run as several.
    pub(crate) tokens_per_launch: u64,
    /// What it exchanges through: one for each of its schedules that does.
    pub(crate) regions: Vec<RegionKey>,
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "hosts hold any number of clusters"))]
    pub(crate) site: Site,
    pub(crate) timeout: Duration,
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "hosts compile at once"))]
    pub(crate) lazy: bool,
    pub(crate) agreement: Agreement,
    /// Optional inputs that all ranks must have, or none.
    shared_inputs: Vec<ParamId>,
}

impl Plan {
    pub(crate) fn new(graph: &'static Graph, rank: &Rank, options: &Prepare) -> Result<Plan, Error> {
        // Everything from here on indexes by what the graph says, and so do the kernels.
        check(graph).map_err(|problems| ErrorKind::Graph { problems })?;
        let range = 1..=MAX_TOKENS;
        if !range.contains(&options.max_tokens) {
            return Err(ErrorKind::MaxTokens { got: options.max_tokens, max: MAX_TOKENS }.into());
        }
        if let Some(got) = options.exchange_tokens.filter(|t| !range.contains(t)) {
            return Err(ErrorKind::ExchangeTokens { got, max: MAX_TOKENS }.into());
        }
        let programs = programs(graph, rank, options)?;
        for (_, schedule) in &options.schedules {
            if let Some(reason) = programs.iter().find_map(|(_, p)| schedule.refusal(p)) {
                return Err(ErrorKind::Schedule { schedule: schedule.name(), reason }.into());
            }
        }
        // What polls must find room beside what the forks poll with. What does not is none of their business.
        let polls = programs.iter().any(|(_, p)| p.exchanges());
        let site = Site {
            device: rank.device(),
            ranks_per_device: rank.ranks_per_device(),
            forks: if polls { rank.group.family.close(&graph.name) } else { 0 },
            early_trigger: options.early_trigger,
            one_grid: options.one_grid,
            schedules: options.schedules.clone(),
        };
        let max_tokens = options.max_tokens as u64;
        let few = max_tokens.next_power_of_two().min(EXCHANGE_TOKENS);
        let slots = options.exchange_tokens.map_or(few, |t| t as u64);
        let exchanging = programs.iter().find(|(_, p)| p.exchanges() && rank.exchanges_through_memory());
        let regions = exchanging.map_or_else(Vec::new, |(_, p)| {
            let schedules = site.planner(p).schedules().into_iter().map(|(_, schedule)| schedule);
            RegionKey::of_schedules(schedules, &p.dims, slots)
        });
        // Ranks may launch different variants together, so all are cut alike.
        let fits = programs.iter().map(|(_, p)| site.planner(p).tokens_per_launch()).min().unwrap_or(1);
        let tokens_per_launch = match regions.is_empty() {
            false => fits.min(slots),
            true if rank.exchanges_through_memory() => fits,
            true => u64::MAX,
        };
        let most = tokens_per_launch.min(max_tokens);
        let agreement = Agreement::new(graph, &programs, options, &site, &regions);
        let late = programs.iter().flat_map(|(_, p)| p.read_after_exchange());
        let shared_inputs = late.filter(|p| graph.param(*p).optional).collect();
        let arguments = arguments(graph, &programs[0].1);
        let variants = programs
            .into_iter()
            .map(|(present, p)| Variant::new(p, present, most, &site, &regions))
            .collect();
        Ok(Plan {
            graph,
            arguments,
            variants,
            max_tokens: options.max_tokens,
            tokens_per_launch,
            regions,
            site,
            timeout: options.timeout,
            lazy: options.lazy,
            agreement,
            shared_inputs,
        })
    }

    /// Whether `rank` may launch variant `got` while rank 0 launches `first`.
    pub(crate) fn presence_fits(&self, first: usize, rank: u32, got: usize) -> Result<(), ErrorKind> {
        let [first, got] = [first, got].map(|variant| self.variants[variant].present());
        match self.shared_inputs.iter().find(|p| first.has(**p) != got.has(**p)) {
            None => Ok(()),
            Some(differs) => {
                let word = |present| if present { "present" } else { "absent" };
                Err(ErrorKind::Presence {
                    argument: self.graph.param(*differs).name.to_string(),
                    rank,
                    expected: word(first.has(*differs)),
                    got: word(got.has(*differs)),
                })
            }
        }
    }
}

/// The graph bound for every variant that is wanted; at least one.
fn programs(graph: &Graph, rank: &Rank, options: &Prepare) -> Result<Vec<(Presence, Program)>, Error> {
    let request =
        Request { hidden: options.hidden, top_k: options.top_k, dtype: options.dtype, ranks: rank.ranks() };
    let bind = |present| Ok((present, graph.bind(&Dims::bind(graph, &request, present)?)?));
    presences(graph, options)?.into_iter().map(bind).collect()
}

/// The variants that are wanted, the fullest first.
fn presences(graph: &Graph, options: &Prepare) -> Result<Vec<Presence>, Error> {
    let optional: Vec<_> = graph.params.iter().enumerate().filter(|(_, p)| p.optional).collect();
    if let Some(wanted) = &options.variants {
        let presences = wanted.iter().map(|absent| presence(graph, absent));
        let mut presences = presences.collect::<Result<Vec<_>, Error>>()?;
        let absent = |p: &Presence| optional.iter().filter(|(i, _)| !p.has(ParamId(*i as u32))).count();
        presences.sort_unstable_by_key(|p| (absent(p), Reverse(*p)));
        presences.dedup();
        if presences.is_empty() {
            presences.push(Presence::ALL);
        }
        return Ok(presences);
    }
    if optional.len() > FEW_OPTIONALS {
        let names: Vec<_> = optional.iter().map(|(_, p)| format!("`{}`", p.name)).collect();
        return Err(ErrorKind::TooManyVariants {
            optional: optional.len(),
            names: names.join(", "),
            variants: 1 << optional.len(),
        }
        .into());
    }
    Ok(Presence::variants(graph))
}

/// The variant that lacks the inputs named in `absent`.
fn presence(graph: &Graph, absent: &[String]) -> Result<Presence, Error> {
    let optional = || graph.params.iter().enumerate().filter(|(_, p)| p.optional);
    let ids = absent.iter().map(|name| {
        let found = optional().find(|(_, p)| p.name == name.as_str());
        found.map(|(i, _)| ParamId(i as u32)).ok_or_else(|| {
            let names: Vec<_> = optional().map(|(_, p)| format!("`{}`", p.name)).collect();
            let optional = if names.is_empty() { "none".into() } else { names.join(", ") };
            ErrorKind::UnknownVariant { name: name.clone(), optional }.into()
        })
    });
    Ok(Presence::from_absent(ids.collect::<Result<Vec<_>, Error>>()?))
}

/// Schedules by the tokens from which on they serve, in words.
fn described(schedules: &[(u64, Schedule)]) -> String {
    let word = |(from, schedule): &(u64, Schedule)| match from {
        0 | 1 => schedule.name().to_owned(),
        _ => format!("{} from {from} tokens on", schedule.name()),
    };
    schedules.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// What all ranks of a group must have in common: names and values, for comparing and for telling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agreement(Vec<(&'static str, String)>);

impl Agreement {
    fn new(
        graph: &Graph,
        programs: &[(Presence, Program)],
        options: &Prepare,
        site: &Site,
        regions: &[RegionKey],
    ) -> Agreement {
        let dims = &programs[0].1.dims;
        let hash: String = graph.fingerprint()[..8].iter().map(|b| format!("{b:02x}")).collect();
        let variants: Vec<_> = programs.iter().map(|(p, _)| describe(graph, *p)).collect();
        let dtype = |d: DType| d.name().to_owned();
        Agreement(vec![
            ("version of seamline", env!("CARGO_PKG_VERSION").to_owned()),
            ("pattern", graph.name.to_string()),
            ("body (by its hash)", hash),
            ("`hidden`", dims.hidden.to_string()),
            ("`top_k`", dims.top_k.to_string()),
            ("`dtype`", dtype(dims.dtype)),
            ("`wire`", dtype(dims.wire)),
            ("`max_tokens`", options.max_tokens.to_string()),
            ("set of variants", variants.join("; ")),
            ("schedule", described(&site.planner(&programs[0].1).schedules())),
            ("`exchange_tokens`", regions.first().map_or(0, |k| k.slots).to_string()),
            ("`early_trigger`", options.early_trigger.to_string()),
            ("`lazy`", options.lazy.to_string()),
            ("`one_grid`", options.one_grid.to_string()),
            ("number of ranks per device", site.ranks_per_device.to_string()),
            ("number of forks", site.forks.to_string()),
            // Launches are shaped for it, and must be shaped alike.
            ("device", format!("{:?}", site.device)),
        ])
    }

    /// The first thing in which `other` differs: its name, this one's value and the other's.
    pub(crate) fn difference(&self, other: &Agreement) -> Option<(&'static str, String, String)> {
        let pairs = self.0.iter().zip(&other.0);
        pairs.into_iter().find(|(a, b)| a != b).map(|(a, b)| (a.0, a.1.clone(), b.1.clone()))
    }
}
