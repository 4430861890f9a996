//! What `prepare` is told.

use seamline_codegen::DType;
use seamline_codegen::schedule::Schedule;
use std::time::Duration;

/// What a kernel is prepared for. All ranks of a group give the same.
///
/// ```
/// # use seamline_runtime::Prepare;
/// let options = Prepare::new(256).hidden(7168).top_k(8);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prepare {
    pub(crate) max_tokens: usize,
    pub(crate) hidden: Option<u32>,
    pub(crate) top_k: Option<u32>,
    pub(crate) dtype: Option<DType>,
    pub(crate) variants: Option<Vec<Vec<String>>>,
    pub(crate) exchange_tokens: Option<usize>,
    /// From so many tokens on, in order.
    pub(crate) schedules: Vec<(u64, Schedule)>,
    pub(crate) timeout: Duration,
    pub(crate) lazy: bool,
    pub(crate) early_trigger: bool,
    pub(crate) one_grid: bool,
}

impl Prepare {
    /// For launches of up to `max_tokens` tokens, at least 1. More tokens mean more geometries to compile, but not more exchange
    /// memory than for [`exchange_tokens`](Prepare::exchange_tokens).
    pub const fn new(max_tokens: usize) -> Prepare {
        Prepare {
            max_tokens,
            hidden: None,
            top_k: None,
            dtype: None,
            variants: None,
            exchange_tokens: None,
            schedules: Vec::new(),
            timeout: Duration::from_secs(30),
            lazy: false,
            early_trigger: false,
            one_grid: false,
        }
    }

    /// H, unless the pattern's attribute fixes it.
    #[must_use]
    pub const fn hidden(mut self, hidden: u32) -> Prepare {
        self.hidden = Some(hidden);
        self
    }

    /// K, unless the pattern's attribute fixes it. Of no account to a pattern without a `RowMap`.
    #[must_use]
    pub const fn top_k(mut self, top_k: u32) -> Prepare {
        self.top_k = Some(top_k);
        self
    }

    /// The pattern's dtype, unless its attribute fixes it.
    #[must_use]
    pub const fn dtype(mut self, dtype: DType) -> Prepare {
        self.dtype = Some(dtype);
        self
    }

    /// The variants to compile: for each, the optional inputs that are absent. Without it, all variants of up
    /// to two optional inputs are.
    ///
    /// ```
    /// # use seamline_runtime::Prepare;
    /// // Everything present; and without the shared expert.
    /// let options = Prepare::new(256).variants(&[&[], &["shared_expert_output"]]);
    /// ```
    #[must_use]
    pub fn variants(mut self, absent: &[&[&str]]) -> Prepare {
        let names = |names: &&[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        self.variants = Some(absent.iter().map(names).collect());
        self
    }

    /// Tokens that the exchange memory holds; a longer launch runs as several kernels. 128 unless
    /// `max_tokens` is less. Kernels of one group share their exchange memory if they agree in this.
    #[must_use]
    pub const fn exchange_tokens(mut self, tokens: usize) -> Prepare {
        self.exchange_tokens = Some(tokens);
        self
    }

    /// The schedule of every launch, instead of the one that seamline takes: `local` on one rank, `one_shot` on several. It
    /// changes no bit, only how long a launch takes; [`Kernel::explain`](crate::Kernel::explain) says what it sends.
    ///
    /// One that cannot run the pattern on this group is an [error](crate::ErrorKind::Schedule).
    ///
    /// ```
    /// # use seamline_runtime::{Prepare, Schedule};
    /// let options = Prepare::new(256).schedule(Schedule::Owner);
    /// ```
    #[must_use]
    pub fn schedule(self, schedule: Schedule) -> Prepare {
        self.schedule_from(1, schedule)
    }

    /// The schedule of launches of `tokens` tokens and more; fewer keep theirs. A launch of more tokens than
    /// [`exchange_tokens`](Prepare::exchange_tokens) runs as several kernels, each of which counts by itself. Every schedule that
    /// exchanges has exchange memory of its own.
    ///
    /// ```
    /// # use seamline_runtime::{Prepare, Schedule};
    /// // One hop for a single token, two for more.
    /// let options = Prepare::new(256).schedule_from(2, Schedule::Owner);
    /// ```
    #[must_use]
    pub fn schedule_from(mut self, tokens: usize, schedule: Schedule) -> Prepare {
        let tokens = (tokens as u64).max(1);
        self.schedules.retain(|(before, _)| *before < tokens);
        self.schedules.push((tokens, schedule));
        self
    }

    /// How long a kernel waits for another rank, and `prepare` for the other threads; 30 seconds unless
    /// given.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Prepare {
        self.timeout = timeout;
        self
    }

    /// Compiles at the first launch, which must not be captured and in which all ranks take part. Everything
    /// else happens at `prepare` all the same. Host executors always compile at `prepare`.
    #[must_use]
    pub const fn lazy(mut self) -> Prepare {
        self.lazy = true;
        self
    }

    /// Lets the next kernel on the stream start right after this one has begun, if it is launched as a
    /// dependent. That kernel must itself wait (`griddepcontrol.wait`) before it touches what this one
    /// writes.
    #[must_use]
    pub const fn early_trigger(mut self) -> Prepare {
        self.early_trigger = true;
        self
    }

    /// Runs all ranks of a loopback group in one grid, on the first rank's stream, by
    /// [`launch_all`](crate::launch_all) alone: for tools such as compute-sanitizer, under which kernels run
    /// one at a time and ranks in kernels of their own would wait for ever. Not for captures, nor for speed.
    #[must_use]
    pub const fn one_grid(mut self) -> Prepare {
        self.one_grid = true;
        self
    }
}
