//! A group of ranks over host memory: what the runtime does, as far as a kernel can tell.
#![allow(dead_code, reason = "each test takes a part")]

use seamline_codegen::abi::{self, Slot};
use seamline_codegen::emit::{Module, Target, emit};
use seamline_codegen::reference::{Buffer, RankOutputs};
use seamline_codegen::schedule::{DeviceModel, Geometry, LaunchShape, Planner, Schedule};
use seamline_codegen::workload::{Argument, Workload};
use seamline_codegen::{DType, Dims, OutputId, ParamId, Presence, Program, Request, Role};
use seamline_sim::{DEVICE_LAYER, Launch, Library, Options, Range, Report, SimError, Source, Usage};
use std::sync::Arc;

/// The seam of Kimi-K2.5.
pub const K25: &str = "
#[fused_pattern(dtype = bf16)]
pub fn moe_finalize_ar_residual_rmsnorm(
    gemm2_out: Permuted,
    expanded_idx_to_permuted_idx: RowMap,
    expert_scale_factor: ExpertWeights<f32>,
    shared_expert_output: Option<Tokens>,
    residual_in: Tokens,
    rms_gamma: Channels,
    eps: Scalar,
) -> (Tokens, Tokens) {
    let local = finalize(gemm2_out, expanded_idx_to_permuted_idx, expert_scale_factor) + shared_expert_output;
    let residual_out = all_reduce(local) + residual_in;
    let norm_out = rms_norm(residual_out, rms_gamma, eps);
    (residual_out, norm_out)
}";

/// The program of a pattern's source text.
pub fn program(source: &str, hidden: u32, top_k: u32, ranks: u32, present: Presence) -> Program {
    let graphs = seamline_codegen::parse::parse_file(source).expect("the pattern parses");
    let graph = &graphs[0];
    let request = Request { hidden: Some(hidden), top_k: Some(top_k), dtype: Some(DType::Bf16), ranks };
    graph.bind(&Dims::bind(graph, &request, present).expect("the dims bind")).expect("the program lowers")
}

/// What a rank owns.
struct Rank {
    region: Buffer,
    epochs: Buffer,
    status: Buffer,
    host_status: Buffer,
}

pub struct Group {
    pub program: Program,
    pub library: Arc<Library>,
    module: Module,
    device: DeviceModel,
    schedule: Schedule,
    ranks: Vec<Rank>,
    slots: u64,
    pub timeout_ns: u64,
}

/// One launch on every rank: its arguments and what it writes.
pub struct Call {
    pub launches: Vec<Launch>,
    pub outputs: Vec<Vec<Buffer>>,
    tokens: usize,
}

fn words(len: usize, word: u32) -> Buffer {
    let mut buffer = Buffer::new(DType::I32, len);
    buffer.as_mut_slice::<u32>().unwrap().fill(word);
    buffer
}

fn address(buffer: &Buffer) -> u64 {
    buffer.bytes().as_ptr() as u64
}

impl Group {
    pub fn new(program: Program, max_tokens: u64) -> Group {
        Group::on(DeviceModel::H200, program, max_tokens, |source| source).expect("the source builds")
    }

    /// A group that a certain schedule runs.
    pub fn of(schedule: Schedule, program: Program, max_tokens: u64) -> Group {
        let group = Group::scheduled(DeviceModel::H200, schedule, program, max_tokens, |source| source);
        group.expect("the source builds")
    }

    /// A group on a certain device, whose source `change` has changed.
    pub fn on(
        device: DeviceModel,
        program: Program,
        max_tokens: u64,
        change: impl FnOnce(String) -> String,
    ) -> Result<Group, SimError> {
        Group::scheduled(device, Schedule::of(&program), program, max_tokens, change)
    }

    /// The same, run by a certain schedule.
    pub fn scheduled(
        device: DeviceModel,
        schedule: Schedule,
        program: Program,
        max_tokens: u64,
        change: impl FnOnce(String) -> String,
    ) -> Result<Group, SimError> {
        let planner = Planner::new(&program, device, 1, true).with_schedules([(1, schedule)]);
        let geometries = planner.geometries(max_tokens);
        let module = emit(&program, &Target { geometries, early_trigger: true, one_grid: false });
        let text = change(module.with_device(DEVICE_LAYER));
        let entries = module.entries.iter().map(|e| e.name.as_str()).collect::<Vec<_>>();
        let library = Library::build(&Source { pattern: &program.name, text: &text, entries: &entries })?;
        let region = schedule.layout(&program).bytes(max_tokens);
        let rank = |_| Rank {
            region: words(region as usize / 4, abi::EMPTY_WORD),
            epochs: words(max_tokens as usize, 0),
            status: words(abi::STATUS_WORDS, 0),
            host_status: words(abi::STATUS_WORDS, 0),
        };
        let ranks = (0..program.dims.ranks).map(rank).collect();
        Ok(Group {
            program,
            library,
            module,
            device,
            schedule,
            ranks,
            slots: max_tokens,
            timeout_ns: 30_000_000_000,
        })
    }

    pub fn status(&self, rank: usize) -> &[u32] {
        self.ranks[rank].status.as_slice().unwrap()
    }

    pub fn host_status(&self, rank: usize) -> &[u32] {
        self.ranks[rank].host_status.as_slice().unwrap()
    }

    pub fn set_epoch(&mut self, epoch: u32) {
        for rank in &mut self.ranks {
            rank.epochs.as_mut_slice::<u32>().unwrap().fill(epoch);
        }
    }

    pub fn call(&self, workload: &Workload) -> Call {
        let planner = Planner::new(&self.program, self.device, 1, true);
        let shape = planner.with_schedules([(1, self.schedule)]).shape(workload.tokens() as u64);
        self.call_shaped(workload, shape)
    }

    fn call_shaped(&self, workload: &Workload, LaunchShape { geometry, clusters }: LaunchShape) -> Call {
        let tokens = workload.tokens();
        let hidden = self.program.dims.hidden as usize;
        let mut call = Call { launches: Vec::new(), outputs: Vec::new(), tokens };
        for r in 0..self.ranks.len() {
            // What nobody writes must show.
            let outputs = self.program.outputs.iter().enumerate().map(|(o, output)| {
                let mut buffer = Buffer::new(output.dtype, tokens * hidden);
                match output.in_place {
                    Some(p) => match &workload.rank(r)[p.0 as usize] {
                        Argument::Tensor(t) => buffer
                            .bytes_mut()
                            .copy_from_slice(&t.bytes()[..tokens * hidden * output.dtype.size()]),
                        other => panic!("output {o} is in place of {other:?}"),
                    },
                    None => buffer.bytes_mut().fill(0xA5),
                }
                buffer
            });
            let outputs = outputs.collect::<Vec<_>>();
            let (args, memory) = self.arguments(r, workload, &outputs);
            call.launches.push(Launch {
                library: Arc::clone(&self.library),
                entry: self.entry(&geometry).into(),
                rank: r as u32,
                grid: (clusters * geometry.ctas, 1),
                cluster: geometry.ctas,
                threads: geometry.threads,
                dependent: true,
                args,
                memory,
            });
            call.outputs.push(outputs);
        }
        call
    }

    fn entry(&self, geometry: &Geometry) -> String {
        self.module.entry(geometry).expect("the geometry was generated").name.clone()
    }

    fn arguments(&self, r: usize, workload: &Workload, outputs: &[Buffer]) -> (Vec<u64>, Vec<Range>) {
        let (mut args, mut memory) = (Vec::new(), Vec::new());
        let own = &self.ranks[r];
        let layout = self.schedule.layout(&self.program);
        let in_place = |p: ParamId| self.program.outputs.iter().position(|o| o.in_place == Some(p));
        let mut range = |name: String, buffer: &Buffer, usage| {
            let (start, bytes) = (address(buffer), buffer.bytes().len() as u64);
            memory.push(Range { name: name.into(), start, bytes, usage });
            start
        };
        let mut add = |slot: Slot| match slot {
            Slot::Input(p) => {
                let param = self.program.param(p);
                let usage = match param.role {
                    Role::Channels(_) => Usage::Weights,
                    _ => Usage::Input,
                };
                match (&workload.rank(r)[p.0 as usize], in_place(p)) {
                    (_, Some(o)) => range(param.name.to_string(), &outputs[o], Usage::Output),
                    (Argument::Tensor(buffer), None) => range(param.name.to_string(), buffer, usage),
                    (other, None) => panic!("`{}` is {other:?}", param.name),
                }
            }
            Slot::Rows(p) => match &workload.rank(r)[p.0 as usize] {
                Argument::Tensor(buffer) => (buffer.len() / self.program.dims.hidden as usize) as u64,
                other => panic!("rows of {other:?}"),
            },
            Slot::Scalar(p) => match workload.rank(r)[p.0 as usize] {
                Argument::Scalar(x) => x.to_bits().into(),
                ref other => panic!("a scalar that is {other:?}"),
            },
            Slot::Output(OutputId(o)) => {
                range(self.program.outputs[o as usize].name.clone(), &outputs[o as usize], Usage::Output)
            }
            Slot::Tokens => workload.tokens() as u64,
            Slot::Status => range("status".into(), &own.status, Usage::Control),
            Slot::Region(0) => range("region".into(), &own.region, Usage::Inbox),
            Slot::Region(i) => address(&self.ranks[(r + i as usize) % self.ranks.len()].region),
            Slot::Epochs => range("epochs".into(), &own.epochs, Usage::Control),
            Slot::HostStatus => range("host status".into(), &own.host_status, Usage::Control),
            Slot::TimeoutNs => self.timeout_ns,
            Slot::GenerationBytes => layout.generation_bytes(self.slots),
            Slot::Rank => r as u64,
            other => panic!("the slot {other:?} is not known here"),
        };
        args.extend(abi::slots(&self.program).into_iter().map(&mut add));
        for (q, peer) in self.ranks.iter().enumerate().filter(|_| self.program.exchanges()) {
            memory.extend(layout.outboxes(r as u32, self.slots).map(|outbox| Range {
                name: format!("region of rank {q}").into(),
                start: address(&peer.region) + outbox.start,
                bytes: outbox.bytes,
                usage: Usage::Outbox { rank: q as u32, row: outbox.piece, stride: outbox.stride },
            }));
        }
        (args, memory)
    }

    /// Runs calls, queued one after the other.
    pub fn run(&mut self, calls: &mut [Call], options: &Options) -> Result<Report, SimError> {
        let launches = calls.iter().flat_map(|c| c.launches.clone()).collect::<Vec<_>>();
        // SAFETY: the arguments are what `abi::slots` says; the ranges are buffers that `self`, the calls and the workloads own.
        // The calls and the group are borrowed exclusively, and workloads are only read.
        unsafe { seamline_sim::run(&launches, options) }
    }
}

impl Call {
    /// Where the first difference from the reference is.
    pub fn difference(&self, program: &Program, expected: &[RankOutputs]) -> Option<String> {
        for (rank, (got, expected)) in self.outputs.iter().zip(expected).enumerate() {
            for (o, (got, expected)) in got.iter().zip(&expected.outputs).enumerate() {
                let size = got.dtype().size();
                let elements = got.bytes().chunks(size).zip(expected.bytes().chunks(size));
                if let Some((i, (g, e))) = elements.enumerate().find(|(_, (g, e))| g != e) {
                    let hidden = program.dims.hidden as usize;
                    let name = &program.outputs[o].name;
                    return Some(format!(
                        "rank {rank} `{name}` [{}, {}] of {} tokens is {g:02x?}, expected {e:02x?}",
                        i / hidden,
                        i % hidden,
                        self.tokens
                    ));
                }
            }
        }
        None
    }
}
