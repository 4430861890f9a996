//! The kinds of inputs.

/// What a workload is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Normally distributed; rows in random order among unused ones.
    Ordinary,
    /// As a mixture-of-experts engine makes it: experts chosen by the sigmoid of router logits, their
    /// weights normalised and times 2.827, rows sorted by expert and padded to tiles, outlier channels.
    Engine {
        /// Experts of the layer.
        experts: u32,
        /// Whether each rank holds whole experts, so that the others' rows are -1, rather than a slice of
        /// every expert.
        expert_parallel: bool,
    },
    /// Negative zeros, and values that become one where they are rounded.
    NegativeZeros,
    /// Activations that are subnormals of their dtype.
    Subnormals,
    /// Infinities and NaNs with payloads, some rows of nothing else.
    InfAndNan,
    /// A third of the experts dropped (-1), NaN for their weights and in the rows that nothing points at.
    NanBehindDropped,
    /// Every second token has no expert on this rank.
    AllDropped,
    /// Row indices just past the last row, far past it, and below -1.
    OutOfRange,
    /// Large terms that cancel within a token and between ranks, and small ones beside them.
    Cancelling,
    /// P = 0: no permuted row at all, whatever the map says.
    NoRows,
    /// -1, 0 and 1: every sum is exact in every dtype.
    Integers,
    /// Near the largest finite value, so that sums and roundings overflow.
    Overflow,
}

impl Kind {
    /// Kimi-K2 and K2.5: 384 experts, tensor-parallel.
    pub const KIMI_K2: Kind = Kind::Engine { experts: 384, expert_parallel: false };

    /// The same model with its experts spread over the ranks.
    pub const KIMI_K2_EXPERT_PARALLEL: Kind = Kind::Engine { experts: 384, expert_parallel: true };

    /// Everything that has broken a kernel of this sort.
    pub const HOSTILE: [Kind; 10] = [
        Kind::NegativeZeros,
        Kind::Subnormals,
        Kind::InfAndNan,
        Kind::NanBehindDropped,
        Kind::AllDropped,
        Kind::OutOfRange,
        Kind::Cancelling,
        Kind::NoRows,
        Kind::Integers,
        Kind::Overflow,
    ];

    /// Its name in tables and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Ordinary => "ordinary",
            Kind::Engine { expert_parallel: false, .. } => "engine",
            Kind::Engine { expert_parallel: true, .. } => "engine, expert-parallel",
            Kind::NegativeZeros => "negative zeros",
            Kind::Subnormals => "subnormals",
            Kind::InfAndNan => "inf and nan",
            Kind::NanBehindDropped => "nan behind -1",
            Kind::AllDropped => "all experts -1",
            Kind::OutOfRange => "indices out of range",
            Kind::Cancelling => "cancelling",
            Kind::NoRows => "no rows",
            Kind::Integers => "integers",
            Kind::Overflow => "overflow",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
