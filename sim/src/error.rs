//! What can go wrong: before a run, and in a kernel.

use crate::{Order, ParseOrderError};
use std::fmt;
use std::path::PathBuf;

/// Why a kernel could not be built or run, or which rule it broke.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// There is no compiler.
    #[error(
        "no C++ compiler was found (searched: {searched}): install one (`apt install g++`, `dnf install gcc-c++`, \
         `xcode-select --install`), or name it in CXX"
    )]
    NoCompiler {
        /// What was tried.
        searched: String,
    },
    /// The compiler refused the source.
    #[error("`{compiler}` cannot compile `{pattern}` for the simulator:\n{excerpt}")]
    Compile {
        /// The compiler.
        compiler: String,
        /// The pattern.
        pattern: String,
        /// The first messages, each with the lines of source around it.
        excerpt: String,
    },
    /// A thread of the pattern's kernel needs more stack than the simulator can give it.
    #[error(
        "`{pattern}` is too large for the simulator: a thread of its kernel needs {} of stack, and can have {limit} bytes; \
         split the pattern in two", needed.map_or("an amount that is not known".to_owned(), |bytes| format!("{bytes} bytes"))
    )]
    TooLarge {
        /// The pattern.
        pattern: String,
        /// What its functions take together, if that is bounded.
        needed: Option<u64>,
        /// The most that they may take.
        limit: u64,
    },
    /// A compiler without `-fstack-usage`: stacks could overflow.
    #[error(
        "`{compiler}` does not list what its functions take of the stack (`-fstack-usage`), which the simulator must know; name \
         another compiler in CXX, as in `CXX=g++`, or unset it"
    )]
    NoStackUsage {
        /// The compiler.
        compiler: String,
    },
    /// A file could not be written, read or run.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What was taken for a compiler is none.
    #[error(
        "`{compiler}` ends without a complaint, and without a shared object: it is no C++ compiler; name one in CXX, as in \
         `CXX=g++`, or unset it"
    )]
    NoObject {
        /// What was run.
        compiler: String,
    },
    /// Built kernels are not kept.
    #[error(
        "built kernels are not kept, and each process builds its own: {reason}; set SEAMLINE_CACHE_DIR to a folder that this \
         user alone may enter, on a disk with room"
    )]
    Cache {
        /// Why not.
        reason: String,
    },
    /// Nothing can be built anywhere.
    #[error(
        "a kernel for the simulator can be built nowhere: {tried}; set TMPDIR to a folder that can be written, on a disk with room"
    )]
    NoPlace {
        /// Folders, and what is wrong with each.
        tried: String,
    },
    /// Objects cannot be loaded from where they are, only from memory.
    #[error(
        "`{}` can be loaded only as a copy in memory: {reason}; set SEAMLINE_CACHE_DIR to a folder on a disk that code may be \
         run from (is it mounted noexec?)", path.display()
    )]
    NoExecution {
        /// The shared object.
        path: PathBuf,
        /// What the loader said.
        reason: String,
    },
    /// The shared object cannot be loaded, though it was just built.
    #[error(
        "cannot load `{}`, which `{compiler}` built: {reason}; name a compiler that builds for this machine in CXX", path.display()
    )]
    Load {
        /// The shared object.
        path: PathBuf,
        /// The compiler.
        compiler: String,
        /// What the loader said.
        reason: String,
    },
    /// `SEAMLINE_SIM_ORDER` names no order.
    #[error("SEAMLINE_SIM_ORDER: {0}")]
    Order(ParseOrderError),
    /// A launch that no GPU would accept.
    #[error("the launch of `{entry}` on rank {rank} is not valid: {reason}")]
    Launch {
        /// The kernel.
        entry: String,
        /// Its rank.
        rank: u32,
        /// What is wrong.
        reason: String,
    },
    /// Every thread of a kernel that exchanges needs memory at once.
    #[error(
        "`{pattern}` needs more memory than there is: {fibers} CUDA threads are alive and {} MiB are left: \
         simulate fewer tokens or ranks", available >> 20
    )]
    Memory {
        /// The pattern.
        pattern: String,
        /// Threads that have a stack.
        fibers: usize,
        /// Bytes that are left.
        available: u64,
    },
    /// A thread broke a rule.
    #[error("{pattern}: {at}: {fault}\n  replay: order {order}")]
    Fault {
        /// The pattern.
        pattern: String,
        /// Who, and where in the source.
        at: Box<At>,
        /// The rule.
        fault: Fault,
        /// The order that found it.
        order: Order,
    },
    /// No thread can go on.
    #[error("{pattern}: deadlock: {}\n  replay: order {order}", list(waits))]
    Deadlock {
        /// The pattern.
        pattern: String,
        /// Who waits for what; threads that wait alike are one entry.
        waits: Vec<Waiting>,
        /// The order that found it.
        order: Order,
    },
}

fn list(waits: &[Waiting]) -> String {
    const SHOWN: usize = 16;
    let mut text = waits.iter().take(SHOWN).map(|w| format!("\n  {w}")).collect::<String>();
    if waits.len() > SHOWN {
        text += &format!("\n  and {} groups of threads more", waits.len() - SHOWN);
    }
    text
}

/// A thread, and the line of generated source that it has come to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct At {
    /// The kernel.
    pub entry: String,
    /// Which launch of the run, from 0.
    pub launch: usize,
    /// The rank.
    pub rank: u32,
    /// The block, in x and y.
    pub block: (u32, u32),
    /// The thread.
    pub thread: u32,
    /// The file, as the compiler knows it.
    pub file: String,
    /// The line, from 1; 0 before the first primitive.
    pub line: u32,
    /// What is written there.
    pub source: String,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let At { entry, launch, rank, block: (x, y), thread, file, line, source } = self;
        write!(f, "`{entry}` (launch {launch}) rank {rank} block {x}")?;
        if *y > 0 {
            write!(f, ",{y}")?;
        }
        write!(f, " thread {thread}")?;
        match line {
            0 => Ok(()),
            _ => write!(f, " at {file}:{line} (`{source}`)"),
        }
    }
}

/// Threads of one kernel that wait at the same line for the same thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The first of them.
    pub at: At,
    /// How many they are.
    pub threads: usize,
    /// For what.
    pub awaits: String,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.threads {
            0 | 1 => write!(f, "{}: waits for {}", self.at, self.awaits),
            n => write!(f, "{} and {} more: wait for {}", self.at, n - 1, self.awaits),
        }
    }
}

/// A rule of CUDA or of the exchange that a thread broke.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// An access that no argument allows.
    #[error("{verb} {bytes} bytes at {place}: no argument allows that")]
    Memory {
        /// What the access does.
        verb: &'static str,
        /// Its size.
        bytes: u32,
        /// What is there.
        place: String,
    },
    /// An address that is not a multiple of the access's size.
    #[error("{verb} {bytes} bytes at {place}, and the address is not a multiple of {bytes}")]
    Misaligned {
        /// What the access does.
        verb: &'static str,
        /// Its size.
        bytes: u32,
        /// What is there.
        place: String,
    },
    /// An access to what the kernel before may still write.
    #[error("{verb} {place} before `grid_wait`: only constant weights may be read there")]
    BeforeWait {
        /// What the access does.
        verb: &'static str,
        /// What is there.
        place: String,
    },
    /// A row with a word that means that nothing has been written.
    #[error("pushes the word 0xFFFFFFFF, which means empty, to {place}: its reader waits for ever")]
    PushesEmpty {
        /// What is there.
        place: String,
    },
    /// A slot that is emptied with something else.
    #[error("empties {place} with another word than 0xFFFFFFFF: its next reader takes that for data")]
    ArmsFull {
        /// What is there.
        place: String,
    },
    /// A row that was not read, or not emptied, before the next one came.
    #[error("pushes to {place}, which is not empty: the row there is lost, or was never emptied")]
    Overwrites {
        /// What is there.
        place: String,
    },
    /// A block's barrier that not all its threads can reach.
    #[error("ends, and {waiting} threads of its block wait at a barrier (the first at {place})")]
    EndsBeforeBarrier {
        /// How many wait.
        waiting: u32,
        /// Where the first one does.
        place: String,
    },
    /// One warp, two barriers.
    #[error(
        "is at another `{primitive}` than a thread of its warp, which is at {place}: the barrier is in divergent code"
    )]
    Divergent {
        /// The primitive.
        primitive: &'static str,
        /// Where the other one is.
        place: String,
    },
    /// A cluster barrier's halves do not alternate.
    #[error("arrives at the cluster barrier twice without a wait between")]
    ArrivesTwice,
    /// A cluster barrier's halves do not alternate.
    #[error("waits at the cluster barrier without having arrived")]
    WaitsUnarrived,
    /// A block that ends without the wait breaks the order of the launches after it.
    #[error(
        "ends the block, of which no thread has called `grid_wait`: the launch after it may overtake the one before it"
    )]
    NeverWaits,
    /// The dependents may begin only when this launch is past its own wait.
    #[error("calls `grid_launch_dependents` before `grid_wait`")]
    TriggersBeforeWait,
    /// More than a block's static shared memory.
    #[error("declares {bytes} bytes of shared memory, with what came before: a block has {limit}")]
    SharedMemory {
        /// The sum.
        bytes: u64,
        /// What there is.
        limit: u64,
    },
    /// A shared access that is not a shared variable's word.
    #[error("{verb} shared memory at an address that is not a shared variable's")]
    SharedAddress {
        /// What the access does.
        verb: &'static str,
    },
    /// Shared memory begins with no value.
    #[error("reads a shared variable that nobody has written")]
    SharedUnwritten,
    /// A barrier is missing.
    #[error(
        "{verb} a shared variable that thread {thread} of block {block} of the cluster has {earlier} at {place}, and no barrier lies between"
    )]
    SharedRace {
        /// What the access does.
        verb: &'static str,
        /// What the other thread did.
        earlier: &'static str,
        /// The other thread's block, in the cluster.
        block: u32,
        /// The other thread, in its block.
        thread: u32,
        /// Where it did that.
        place: String,
    },
    /// Not a lane.
    #[error("shuffles with lane {lane}: a warp has 32 lanes")]
    ShuffleLane {
        /// The lane.
        lane: u32,
    },
    /// An mbarrier that is used before it is there.
    #[error(
        "uses an mbarrier that no thread has made, or none whose barrier it is behind: make it, then pass a barrier"
    )]
    MbarrierUnmade,
    /// An mbarrier that is made while others may use it.
    #[error("makes an mbarrier that has been made before")]
    MbarrierMadeTwice,
    /// More arrivals than an mbarrier is made for.
    #[error("arrives at an mbarrier whose phase has had its one arrival")]
    MbarrierArrivedTwice,
    /// More bytes than a phase expects: they are another phase's.
    #[error("brings {bytes} bytes more to an mbarrier than its phase expects: a sender is a phase ahead")]
    MbarrierOverrun {
        /// Bytes too many.
        bytes: u64,
    },
    /// A block that ends before what is sent to it has come.
    #[error(
        "ends the block, of which an mbarrier lacks {lacks}: what is still sent to it meets a block that has gone"
    )]
    MbarrierUnfinished {
        /// What has not come.
        lacks: String,
    },
    /// Distributed shared memory of a block that may not have begun.
    #[error(
        "stores to the shared memory of its cluster before a cluster barrier has said that every block runs"
    )]
    ClusterNotStarted,
    /// Distributed shared memory of a block that has gone.
    #[error("stores to the shared memory of block {rank} of its cluster, which has ended")]
    ClusterEnded {
        /// The block's rank in the cluster.
        rank: u32,
    },
    /// Not a shared variable, or not a block of the cluster.
    #[error(
        "stores to the shared memory of block {rank} of its cluster of {size}, at an address that is not a shared variable's"
    )]
    ClusterAddress {
        /// The block's rank in the cluster.
        rank: u32,
        /// Blocks of the cluster.
        size: u32,
    },
}
