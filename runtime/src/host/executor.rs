//! Executors that run on the host: what they are asked, and what they are told of a launch.
//!
//! A group made with [`Group::with_executor`](crate::Group::with_executor) hands its kernels to an
//! [`Executor`]. It gets what a GPU would get: the generated source, the launch's shape, the packed argument
//! words, and exchange memory that lives from launch to launch. The arguments have been checked against the
//! pattern, so that what [`HostLaunch`] states about memory holds.

use crate::error::Error;
use crate::host::launch::Bound;
use crate::plan::variant::Variant;
use seamline_codegen::schedule::{DeviceModel, LaunchShape};
use seamline_codegen::{OutputId, ParamId, reference};
use std::fmt;

/// Runs kernels on the host, all ranks of a group at once.
pub trait Executor: fmt::Debug + Send + Sync {
    /// Its name, for messages.
    fn name(&self) -> &'static str;

    /// The device for which launches are shaped.
    fn device(&self) -> DeviceModel {
        DeviceModel::H200
    }

    /// Whether its kernels exchange through memory: whether a group needs regions, and long launches are cut
    /// to fit them.
    fn exchanges_through_memory(&self) -> bool {
        true
    }

    /// All that is slow, for the variants of one pattern. Called once for all ranks of a group and of its forks.
    ///
    /// # Errors
    /// Whatever keeps it from running them; see [`Error::executor`].
    fn compile(&self, variants: &[Variant]) -> Result<Box<dyn HostKernel>, Error>;
}

/// The variants of a pattern, ready to run.
pub trait HostKernel: fmt::Debug + Send + Sync {
    /// Runs `launches` until all have ended: for each launch in order, that of every rank. A rank's launches
    /// follow each other as on a stream, and those at the same place in their ranks' queues exchange. Runs of
    /// a group never overlap; those of its forks may overlap with them, and share no memory but inputs.
    ///
    /// # Errors
    /// Whatever kept it from running them to the end.
    fn run(&self, launches: &[HostLaunch<'_>]) -> Result<(), Error>;
}

/// One kernel of one rank.
#[derive(Debug)]
pub struct HostLaunch<'a> {
    pub(crate) bound: &'a Bound<'a>,
    /// Of the bundle; a long launch is several kernels.
    pub(crate) first_token: u64,
    pub(crate) tokens: u64,
    pub(crate) words: Vec<u64>,
    pub(crate) shape: LaunchShape,
    /// Index into the kernel's regions.
    pub(crate) region: usize,
    pub(crate) entry: usize,
}

impl HostLaunch<'_> {
    /// Who launches it.
    pub fn rank(&self) -> u32 {
        self.bound.rank
    }

    /// Which of the compiled variants it is. It may differ between ranks.
    pub fn variant_index(&self) -> usize {
        self.bound.variant_index
    }

    /// The variant.
    pub fn variant(&self) -> &Variant {
        self.bound.variant
    }

    /// Its tokens, at least 1.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The symbol of the generated kernel.
    pub fn entry(&self) -> &str {
        &self.variant().module().entries[self.entry].name
    }

    /// Blocks in x.
    pub fn blocks(&self) -> u32 {
        self.shape.clusters * self.shape.geometry.ctas
    }

    /// Blocks of a cluster.
    pub fn cluster(&self) -> u32 {
        self.shape.geometry.ctas
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.shape.geometry.threads
    }

    /// The kernel's argument words, in the order of [`abi::slots`](seamline_codegen::abi::slots).
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// All memory that the kernel may reach, and how. It is valid, and nobody else's, until the run ends.
    pub fn spans(&self) -> Vec<Span<'_>> {
        self.bound.spans(self.region, self.first_token, self.tokens)
    }

    /// The argument of a parameter, in the reference executor's terms.
    pub fn input(&self, param: ParamId) -> reference::Input<'_> {
        self.bound.input(param, self.first_token, self.tokens)
    }

    /// Stores the rows of an output.
    ///
    /// # Safety
    /// Nothing borrows the memory: what [`input`](HostLaunch::input) has answered for the parameter that the
    /// output is written in place of, on this launch or another of the same run, is not used any more, and no
    /// other thread stores the same output.
    ///
    /// # Panics
    /// When `rows` is not as long as the output's rows of this launch.
    pub unsafe fn store(&self, output: OutputId, rows: &[u8]) {
        // SAFETY: the caller's promise.
        unsafe { self.bound.store(output, self.first_token, self.tokens, rows) }
    }

    /// Counts row indices outside `[-1, P)`, for an executor whose kernels do not.
    pub fn count_out_of_range(&self, indices: u64) {
        self.bound.count_out_of_range(indices);
    }
}

/// Memory that a kernel may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span<'a> {
    /// The argument's name, or what the memory is.
    pub name: &'a str,
    /// Where it begins.
    pub start: u64,
    /// Its length.
    pub bytes: u64,
    /// What may be done there.
    pub usage: AccessRole,
}

/// What a kernel may do with a [`Span`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessRole {
    /// Read at any time: constant weights.
    Weights,
    /// Read after the wait for the preceding kernel.
    Input,
    /// Written after that wait; read by the thread that will write it, where it is in place.
    Output,
    /// This rank's slots: polled and emptied.
    Inbox,
    /// This rank's rows, or pieces of them, in the slots of `rank`, its own too: written.
    Outbox {
        /// Whose slots they are.
        rank: u32,
        /// Bytes of a row or piece, at each multiple of `stride`.
        row: u64,
        /// Bytes from one to the next.
        stride: u64,
    },
    /// Epochs and control words: read and written, by atomic operations, since the host reads them during a run.
    Control,
}
