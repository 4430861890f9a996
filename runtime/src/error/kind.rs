//! The rules, one variant each, with the values that broke it.

use crate::group::status::Fault;
use seamline_codegen::DType;
use std::time::Duration;

/// The rules.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    // Bundles.
    /// A hand-written bundle hands over the wrong number of arguments.
    #[error(
        "the bundle has {got} arguments, and the pattern has {expected}: `Bundle::collect` gives one per parameter, then one per output that is not in place"
    )]
    #[non_exhaustive]
    Arguments {
        /// Parameters and outputs of the pattern.
        expected: usize,
        /// What came.
        got: usize,
    },
    /// A hand-written bundle hands over the wrong kind of argument.
    #[error("`{argument}` is {expected}, and the bundle gives {got}")]
    #[non_exhaustive]
    ArgumentKind {
        /// The argument.
        argument: String,
        /// What it is.
        expected: &'static str,
        /// What came.
        got: &'static str,
    },
    /// A name that no argument has.
    #[error("`{name}` is no argument of the pattern, which has {known}")]
    #[non_exhaustive]
    UnknownArgument {
        /// What came.
        name: String,
        /// The arguments.
        known: String,
    },
    /// An argument that is given by name, and again.
    #[error("`{argument}` is given twice: give each argument once")]
    #[non_exhaustive]
    ArgumentTwice {
        /// The argument.
        argument: String,
    },
    /// An optional input is present or absent in a way that was not prepared.
    #[error(
        "this launch has {got}, and the kernel was prepared for {prepared}: add it to `Prepare::variants`"
    )]
    #[non_exhaustive]
    Variant {
        /// The launch's variant, in words.
        got: String,
        /// The prepared ones, in words.
        prepared: String,
    },
    /// Elements of the wrong type.
    #[error("`{argument}` holds {got}, and must hold {expected}")]
    #[non_exhaustive]
    DType {
        /// The argument.
        argument: String,
        /// What the kernel was prepared for.
        expected: DType,
        /// What came.
        got: DType,
    },
    /// A shaped argument of the wrong shape.
    #[error("`{argument}` has the shape {got:?}, and must have {expected}")]
    #[non_exhaustive]
    Shape {
        /// The argument.
        argument: String,
        /// The shape with its dims' names and sizes.
        expected: String,
        /// What came.
        got: Vec<usize>,
    },
    /// A shape that says another number of elements than there are.
    #[error("`{argument}` has {got} elements, and its shape {shape:?} says {expected}")]
    #[non_exhaustive]
    ShapeLength {
        /// The argument.
        argument: String,
        /// Its shape.
        shape: Vec<usize>,
        /// Elements of that shape.
        expected: usize,
        /// Elements that there are.
        got: usize,
    },
    /// Too few elements.
    #[error(
        "`{argument}` holds {got} elements, and {shape} of {tokens} tokens needs {expected}: give a longer buffer or fewer tokens"
    )]
    #[non_exhaustive]
    TooShort {
        /// The argument.
        argument: String,
        /// Its shape, by the names of its dims.
        shape: String,
        /// The tokens of the launch.
        tokens: usize,
        /// Elements that they need.
        expected: u64,
        /// Elements that came.
        got: u64,
    },
    /// A raw address at which there is no memory: null, or too near the end of the address space.
    #[error(
        "`{argument}` is {len} elements at {address:#x}, where there can be none: give the address of the tensor's first element"
    )]
    #[non_exhaustive]
    Address {
        /// The argument.
        argument: String,
        /// Where it begins.
        address: u64,
        /// Its elements.
        len: u64,
    },
    /// An address that the kernel's vector accesses cannot use.
    #[error(
        "`{argument}` begins at {address:#x}, and must begin at a multiple of {expected} bytes: give it a buffer of its own, or a slice that begins at a row"
    )]
    #[non_exhaustive]
    Misaligned {
        /// The argument.
        argument: String,
        /// Where it begins.
        address: u64,
        /// Bytes.
        expected: u64,
    },
    /// An output that overlaps another argument.
    #[error(
        "`{output}` overlaps `{other}`: outputs need memory of their own (to write in place, declare the parameter `mut`, assign it and return it)"
    )]
    #[non_exhaustive]
    Overlap {
        /// The output.
        output: String,
        /// What it overlaps.
        other: String,
    },
    /// More tokens than were prepared for.
    #[error(
        "the launch has {got} tokens, and the kernel was prepared for at most {max_tokens}: give more to `Prepare::new`"
    )]
    #[non_exhaustive]
    TooManyTokens {
        /// The most.
        max_tokens: usize,
        /// What came.
        got: usize,
    },
    /// Host memory on a GPU, or device memory on the host.
    #[error("`{argument}` is {got}, and this rank runs on `{executor}`: give {expected}")]
    #[non_exhaustive]
    Memory {
        /// The argument.
        argument: String,
        /// The rank's executor.
        executor: &'static str,
        /// What it takes.
        expected: &'static str,
        /// What came.
        got: &'static str,
    },
    /// Something of another device, or another context of the same device.
    #[error(
        "{what} belongs to {got}, and the rank to {expected}: use memory and streams of the rank's own context"
    )]
    #[non_exhaustive]
    Device {
        /// The argument or the stream.
        what: String,
        /// The rank's device.
        expected: String,
        /// Its device.
        got: String,
    },

    // Queues and groups.
    /// A stream for a host executor, or none for a GPU.
    #[error("the queue is {got}, and this rank runs on `{executor}`: give {expected}")]
    #[non_exhaustive]
    Queue {
        /// The rank's executor.
        executor: &'static str,
        /// What it takes.
        expected: &'static str,
        /// What came.
        got: &'static str,
    },
    /// A cudarc slice on a raw stream, which cannot take part in cudarc's event tracking.
    #[error(
        "`{argument}` is a cudarc slice, and the queue a raw stream: wrap the stream once with `CudaContext::wrap_borrowed_stream`, or give raw pointers"
    )]
    #[non_exhaustive]
    RawStream {
        /// The argument.
        argument: String,
    },
    /// A stream that is another one on each thread.
    #[error(
        "the queue is the per-thread default stream, which is another stream on each thread, so that launches on it have no order: give a stream made with `CudaContext::new_stream`"
    )]
    PerThreadStream,
    /// The launches of a group are totally ordered.
    #[error(
        "the launches of this rank are on another stream: call `rank.move_to(&stream)` first, which orders the two by an event (for launches in no order with these, prepare on a `rank.fork()`)"
    )]
    SecondStream,
    /// The ranks of one GPU would wait for each other on one stream.
    #[error(
        "ranks {first} and {second} are on the same stream, where the second would wait for ever behind the first: give each rank a stream of its own"
    )]
    #[non_exhaustive]
    SharedStream {
        /// One rank.
        first: u32,
        /// The other.
        second: u32,
    },
    /// A collective on a host executor runs all ranks in one call.
    #[error(
        "`launch` runs one rank, and on `{executor}` the {ranks} ranks of a group run in one call: use `launch_all`"
    )]
    #[non_exhaustive]
    NeedsLaunchAll {
        /// The executor.
        executor: &'static str,
        /// Ranks of the group.
        ranks: u32,
    },
    /// A one-grid kernel launched on one rank, or on ranks with different inputs present.
    #[error(
        "the kernel was prepared with `one_grid()`, which runs all ranks in one launch: use `launch_all`, with the same optional inputs on every rank, and outside captures"
    )]
    OneGrid,
    /// Not one of each per rank.
    #[error("got {got} {what} for a group of {expected} ranks: give one per rank, in rank order")]
    #[non_exhaustive]
    Count {
        /// `kernels`, `queues`, `bundles` or `ranks`.
        what: &'static str,
        /// The group's size.
        expected: usize,
        /// What came.
        got: usize,
    },
    /// Ranks or kernels of another group, or in another order.
    #[error(
        "{what} {at} is rank {got_rank} of {got_group}, and must be rank {at} of the first one's group: give those of one group, in rank order"
    )]
    #[non_exhaustive]
    OtherGroup {
        /// `kernel` or `rank`.
        what: &'static str,
        /// Where in the list.
        at: usize,
        /// Its rank.
        got_rank: u32,
        /// `the same group` or `another group`.
        got_group: &'static str,
    },
    /// Kernels that were not prepared together.
    #[error(
        "kernel {at} was prepared with another {what} than kernel 0 ({got}, not {expected}): launch kernels that were prepared together"
    )]
    #[non_exhaustive]
    OtherKernel {
        /// Where in the list.
        at: usize,
        /// What differs.
        what: &'static str,
        /// Kernel 0's.
        expected: String,
        /// This kernel's.
        got: String,
    },
    /// T must be equal on all ranks.
    #[error("rank {rank} launches {got} tokens, and rank 0 {expected}: all ranks launch the same")]
    #[non_exhaustive]
    TokensDiffer {
        /// The rank.
        rank: u32,
        /// Rank 0's.
        expected: usize,
        /// This rank's.
        got: usize,
    },
    /// An input that is used after the collective is present on some ranks only.
    #[error(
        "`{argument}` is {got} on rank {rank} and {expected} on rank 0, and is used after the collective: only what is used before it alone may be present on some ranks and absent on others"
    )]
    #[non_exhaustive]
    Presence {
        /// The input.
        argument: String,
        /// The rank.
        rank: u32,
        /// Rank 0's: `present` or `absent`.
        expected: &'static str,
        /// This rank's.
        got: &'static str,
    },
    /// An earlier launch waited for a peer in vain.
    #[error(
        "{0}; its outputs and those of later launches are NaN: find out why that rank did not come, then reset the group with `seamline::reset`"
    )]
    Fault(Fault),
    /// The first launch of a lazy kernel compiles, which a capture forbids.
    #[error(
        "the kernel was prepared with `lazy()` and is not compiled yet, and the stream is being captured: launch it once before the capture, or leave `lazy()` out"
    )]
    LazyCapture,
    /// cudarc's event tracking waits on events from outside the capture.
    #[error(
        "`{argument}` is a cudarc slice whose context tracks events, and the stream is being captured: call `unsafe {{ ctx.disable_event_tracking() }}` before the capture, or give raw pointers"
    )]
    #[non_exhaustive]
    TrackedCapture {
        /// The argument.
        argument: String,
    },

    // Preparing.
    /// A graph that is no pattern. What `#[fused_pattern]` generates has passed this check.
    #[error("the graph is not one that a kernel can be made of: {}", .problems.join("; "))]
    #[non_exhaustive]
    Graph {
        /// All that is wrong with it.
        problems: Vec<String>,
    },
    /// Dims that do not fit the pattern.
    #[error("{reason}")]
    #[non_exhaustive]
    Bind {
        /// Which, and why not.
        reason: String,
    },
    /// `max_tokens` out of range.
    #[error("`max_tokens` is {got}, and must be in 1..={max}")]
    #[non_exhaustive]
    MaxTokens {
        /// What came.
        got: usize,
        /// The most.
        max: usize,
    },
    /// `exchange_tokens` out of range.
    #[error("`exchange_tokens` is {got}, and must be in 1..={max}")]
    #[non_exhaustive]
    ExchangeTokens {
        /// What came.
        got: usize,
        /// The most.
        max: usize,
    },
    /// A schedule that cannot run the pattern on this group.
    #[error("`{schedule}` cannot run this kernel: {reason}, or leave `Prepare::schedule` out")]
    Schedule {
        /// The schedule.
        schedule: &'static str,
        /// Why not, and what to take instead.
        reason: &'static str,
    },
    /// More variants than are compiled unasked.
    #[error(
        "{optional} inputs are optional ({names}), which makes {variants} variants: name those you launch with `Prepare::variants`"
    )]
    #[non_exhaustive]
    TooManyVariants {
        /// How many are optional.
        optional: usize,
        /// Their names.
        names: String,
        /// Two to their power.
        variants: u64,
    },
    /// `Prepare::variants` names something that is not an optional input.
    #[error(
        "`{name}` is not an optional input: `Prepare::variants` takes the names of those that are absent, out of {optional}"
    )]
    #[non_exhaustive]
    UnknownVariant {
        /// What came.
        name: String,
        /// The optional inputs.
        optional: String,
    },
    /// A group of no ranks, or of too many.
    #[error("the group has {got} ranks, and must have 1 to {max}")]
    #[non_exhaustive]
    GroupSize {
        /// What came.
        got: u32,
        /// The most.
        max: u32,
    },
    /// The ranks prepared different things.
    #[error(
        "rank {rank} prepared another {what} than rank 0 ({got}, not {expected}): all ranks prepare the same"
    )]
    #[non_exhaustive]
    Disagree {
        /// The first rank that differs.
        rank: u32,
        /// What differs.
        what: &'static str,
        /// Rank 0's.
        expected: String,
        /// This rank's.
        got: String,
    },
    /// A rank did not come to `prepare`.
    #[error(
        "waited {waited:?} for ranks {missing:?} to prepare: `prepare` is collective, from one thread per rank (`prepare_all` prepares all from one thread)"
    )]
    #[non_exhaustive]
    PeerTimeout {
        /// Who did not come.
        missing: Vec<u32>,
        /// How long.
        waited: Duration,
    },
    /// Two threads prepare on one rank at a time.
    #[error(
        "rank {rank} is being prepared by another thread too: prepare one kernel after the other, in the same order on all ranks"
    )]
    #[non_exhaustive]
    PreparedTwice {
        /// The rank.
        rank: u32,
    },
    /// A fork of a group whose kernels were planned without it.
    #[error(
        "`{pattern}` was prepared without this fork, whose kernels might take the room on the device that its blocks wait for: take all forks of a group first, then prepare"
    )]
    #[non_exhaustive]
    LateFork {
        /// The first exchanging pattern that was prepared on the group or on one of its forks.
        pattern: String,
    },
    /// A kernel whose successor may take the room that a fork's blocks wait for.
    #[error(
        "`early_trigger()` and forks exclude each other, and the group has {}: what starts early behind this kernel may be any kernel, and take the room on the device that a fork's blocks wait for; leave `early_trigger()` out, or do without forks", counted(*.forks)
    )]
    EarlyTriggerBesideFork {
        /// Forks of the group.
        forks: u32,
    },
    /// Exchange memory that the host does not have.
    #[error(
        "the host has no {bytes} bytes for the exchange memory of one rank: give a smaller `exchange_tokens`"
    )]
    #[non_exhaustive]
    HostMemory {
        /// How much was wanted.
        bytes: u64,
    },
    /// An executor's own error.
    #[error("{executor}: {reason}")]
    #[non_exhaustive]
    Executor {
        /// The executor.
        executor: &'static str,
        /// Its message.
        reason: String,
    },

    // CUDA.
    /// No CUDA driver.
    #[error(
        "no CUDA driver was found (searched the loader's paths for {searched}): install the NVIDIA driver, or run on the host with `Group::simulated` or `Group::reference`"
    )]
    #[non_exhaustive]
    NoDriver {
        /// The library's names.
        searched: String,
    },
    /// A CUDA driver that lacks a function: it is too old, or no driver.
    #[error(
        "the CUDA driver `{library}` has no function `{function}`: install a newer NVIDIA driver (of CUDA 12.0 or later), take a \
         library that is no driver out of the loader's paths (LD_LIBRARY_PATH), or run on the host with `Group::simulated` or \
         `Group::reference`"
    )]
    OldDriver {
        /// The library that was loaded.
        library: String,
        /// The first function that it lacks.
        function: String,
    },
    /// A driver call failed.
    #[error("{doing} failed: {code} ({text})")]
    #[non_exhaustive]
    Driver {
        /// What was being done.
        doing: String,
        /// The driver's name for it.
        code: String,
        /// The driver's words.
        text: String,
    },
    /// A GPU without clusters and dependent launches.
    #[error("{device} has compute capability {}.{}, and kernels need 9.0 (Hopper) or newer", .capability.0, .capability.1)]
    #[non_exhaustive]
    OldDevice {
        /// The device's name.
        device: String,
        /// Major and minor.
        capability: (u32, u32),
    },
    /// No NVRTC.
    #[error(
        "NVRTC was not found; searched, in this order: {searched}. install the CUDA toolkit or `pip install nvidia-cuda-nvrtc`, or set SEAMLINE_NVRTC_PATH to the folder that holds libnvrtc"
    )]
    #[non_exhaustive]
    NoNvrtc {
        /// Where.
        searched: String,
    },
    /// An NVRTC that cannot be used.
    #[error(
        "NVRTC at {path} cannot be used: {reason} (to use another one, set SEAMLINE_NVRTC_PATH to the folder that holds it)"
    )]
    #[non_exhaustive]
    BadNvrtc {
        /// Where it is.
        path: String,
        /// Why not.
        reason: String,
    },
    /// An NVRTC that does not know the GPU.
    #[error("NVRTC {}.{} does not compile for {arch} (it knows {known}): install a newer one", .version.0, .version.1)]
    #[non_exhaustive]
    OldNvrtc {
        /// Major and minor.
        version: (i32, i32),
        /// What was wanted.
        arch: String,
        /// What it compiles for.
        known: String,
    },
    /// Generated code did not compile: a bug of seamline, or of an operation's own code.
    #[error("the generated code did not compile for {arch}\n{excerpt}")]
    #[non_exhaustive]
    Compile {
        /// For what.
        arch: String,
        /// The compiler's errors, each with the generated lines around it.
        excerpt: String,
        /// All that the compiler said.
        log: String,
    },
    /// What would not all be resident, and so might wait for ever.
    #[error(
        "{ranks} ranks on one GPU{} need {needed} clusters of {ctas} CTAs resident at once for {tokens} tokens, and {available} fit: use fewer ranks or forks, or a smaller `exchange_tokens`", beside(*.forks)
    )]
    #[non_exhaustive]
    Residency {
        /// Ranks of the group on the device.
        ranks: u32,
        /// Forks of the group, each with as many ranks.
        forks: u32,
        /// Tokens of one launch.
        tokens: u64,
        /// CTAs of a cluster.
        ctas: u32,
        /// Clusters that must be resident.
        needed: u64,
        /// Clusters that can be.
        available: u64,
    },
}

/// What a group shares its device with, in words.
fn beside(forks: u32) -> String {
    match forks {
        0 => String::new(),
        1 => " and as many of a fork".into(),
        _ => format!(" and as many of each of {forks} forks"),
    }
}

/// So many forks, in words.
fn counted(forks: u32) -> String {
    match forks {
        1 => "a fork".into(),
        _ => format!("{forks} forks"),
    }
}
