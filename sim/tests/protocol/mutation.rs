//! The rules, broken one at a time.

/// A way to break one rule of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Two generations of slots instead of three.
    TwoGenerations,
    /// A launch empties the generation that it writes.
    ArmCurrent,
    /// A launch empties the generation that the next one writes.
    ArmNext,
    /// Nothing is emptied.
    NeverArm,
    /// A rank keeps what it sends in its own region, where the others read it.
    PollPeers,
    /// A poll looks at the first word of a vector only.
    CheckOneWord,
    /// A NaN is sent as it comes, with the bits of an empty word.
    RawNan,
    /// All slots share one epoch, which every launch advances.
    SharedEpoch,
    /// The epoch is an argument, fixed when a graph of two launches is captured.
    EpochFromTheHost,
    /// The epoch is advanced by the first thread that is through, without a barrier.
    AdvanceWithoutBarrier,
    /// Epochs wrap where the generation does not go on.
    WrapOffTheGenerations,
    /// A rank leaves without a word from a rank that it only writes to.
    NoArrivalWord,
    /// One block a token, though not all fit at once.
    MoreBlocksThanFit,
    /// A block receives a token before it has sent the next.
    ReceiveBeforeSendingAll,
    /// An owner publishes before it has seen every slice.
    SumEarly,
    /// A rank waits for the others' sums before it does what it owes them.
    ReceiveBeforeSumming,
    /// An owner waits for the sums of a token before it adds the next.
    SumTokenByToken,
    /// An owner that has not seen every slice in time publishes what it stores.
    PublishAfterFault,
    /// The prologue reads the epoch.
    EpochBeforeWait,
    /// The prologue empties the slot's words of the launch before.
    ArmBeforeWait,
    /// The prologue reads the fault word.
    FaultBeforeWait,
    /// A launch begins before the launch before has ended in memory.
    NoWait,
    /// A launch that begins after a fault sends.
    SendAfterFault,
    /// The fault is forgotten at the end of its launch.
    ForgetFault,
    /// A thread whose own poll was in time advances the epoch, though its launch has failed; so does every launch after the fault.
    AdvanceAfterFault,
    /// Each rank resets itself, when it is ready.
    ResetAlone,
    /// A reset leaves the words in the regions.
    ResetKeepsWords,
    /// A reset leaves the epochs as they are.
    ResetKeepsEpochs,
}
