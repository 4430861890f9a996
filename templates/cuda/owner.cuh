// `owner`: a row's blocks of 256 channels are dealt over the ranks, block b to rank b mod N. Each rank pushes the
// slices of its row to their owners; an owner adds the slices of all ranks in rank order and publishes the sum;
// everyone takes the sums of the others' blocks and goes on. Two hops, and fewer bytes than a row for everyone: a rank
// sends about H (N - 1) / N channels of a token on the wire, and as many in f32.
//
// What is sent: wire slices to owners, then f32 sums from owners to all. What is polled: an owner polls the slices of
// its blocks, every rank the sums of the blocks that it does not own, each in its own memory. A region has a part for
// each hop, both as in exchange.cuh: three generations of slots, empty words, epochs by slot; the NaN of a sum is
// canonical, so that no word of it is an empty one either. The slots of both hops have one epoch. A launch empties in
// its own memory the slices and the sums of the launch before.
//
// Reuse is safe by the same argument: before a rank leaves launch e it has seen a word of launch e from every rank that
// it writes to. It writes slices to the owners, and polls a sum of each. If it owns a block it writes sums to all, and
// has polled a slice of each. So a rank that owns nothing, of a row with fewer blocks than ranks, needs no word of its
// own: it writes to owners alone, and they publish what it waits for; two such ranks never write to each other.
//
// No rank waits for a block that has not begun, in whichever order blocks run: a launch pushes all slices of its
// tokens, then does all that it owes as an owner, and only then waits for sums. Slices depend on nobody, sums on slices
// alone.

// Where the slices of the blocks that a rank owns lie in a slot: block after block, in each a slice from every rank.
template <class Spec>
struct Slices {
  static constexpr u64 STRIDE = 32 * sizeof(Packed<typename Spec::Wire>);
  static constexpr u64 BLOCKS = round_up(RowSums<Spec>::BLOCKS, Spec::RANKS);  // as many for each owner
  static constexpr u64 SLOT_BYTES = BLOCKS * STRIDE;
  SEAMLINE_DEVICE u64 place(int lane) {
    return (u64)(lane / 32 / Spec::RANKS) * (Spec::RANKS * STRIDE) + (u64)(lane % 32) * (STRIDE / 32);
  }
};

// A token's slices and sums, in one launch. With SELF this rank's own travel through its region too: see `Slot`.
template <class Spec, bool SELF>
struct OwnedSlot {
  typedef Slot<Spec, SELF, Slices<Spec>> SlicesOf;
  typedef typename SlicesOf::Pack Pack;
  typedef Packed<f32> Sum;
  static constexpr int RANKS = Spec::RANKS, WORDS = sizeof(Sum) / 4;

  SlicesOf slices;

  __device__ __forceinline__ OwnedSlot(const Exchange<RANKS>& exchange, Status* status, u64 index, u32 epoch)
      : slices{exchange, status, index, epoch} {}

  // How many ranks after this one the owner of a lane's block comes; all lanes of a warp have one owner.
  __device__ __forceinline__ u32 distance(int lane) const {
    return ((u32)lane / 32 % RANKS + RANKS - (u32)slices.exchange.rank) % RANKS;
  }

  // Where the sum of a lane lies in a region: behind all slices, which are as many as a generation of sums has lanes.
  __device__ __forceinline__ u64 offset(u32 epoch, int lane) const {
    const u64 all_slices = 3 * slices.exchange.generation_bytes;
    const u64 generation = slices.exchange.generation_bytes / sizeof(Pack) * sizeof(Sum);
    return all_slices + (epoch % 3) * generation + slices.index * (Slices<Spec>::BLOCKS * 32 * sizeof(Sum)) +
           (u64)lane * sizeof(Sum);
  }

  // Sends a lane to its owner.
  __device__ __forceinline__ void push(int lane, const Pack& p) const {
    const u32 i = distance(lane);
    const u64 to = slices.offset(slices.epoch, lane) + slices.exchange.rank * Slices<Spec>::STRIDE;
    if (SELF || i != 0) {
      SEAMLINE_UNROLL
      for (int w = 0; w < SlicesOf::WORDS; w += 4)
        device::exchange_push16((void*)(slices.exchange.region[i] + to + w * 4), &p.w[w]);
    }
  }

  // Empties what the launch before has read of a lane: slices, if this rank owns it, or else its sum.
  __device__ __forceinline__ void arm(int lane) const {
    const bool own = distance(lane) == 0;
    if (own) slices.arm(lane);
    const u64 sum = slices.exchange.region[0] + offset(slices.epoch + 2, lane);
    SEAMLINE_UNROLL
    for (int w = 0; w < WORDS; w += 4) device::exchange_arm16((void*)(sum + w * 4), EMPTY, SELF || !own);
  }

  // What this rank owes of a lane: if it owns it, waits for the slices of all ranks, adds them and publishes the sum.
  __device__ __forceinline__ void sum_owned(f32 (&sum)[LANE], int lane, const Pack& own, bool& failed) const {
    if (distance(lane) != 0) return;
    slices.gather(sum, lane, own, true, failed);
    if (failed) return;
    Sum p;
    pack(p, sum);
    const u64 to = offset(slices.epoch, lane);
    SEAMLINE_UNROLL
    for (int i = SELF ? 0 : 1; i < RANKS; i++) {
      SEAMLINE_UNROLL
      for (int w = 0; w < WORDS; w += 4)
        device::exchange_push16((void*)(slices.exchange.region[i] + to + w * 4), &p.w[w]);
    }
  }

  // Waits for the sum of a lane, unless `sum_owned` has left it in `sum`. NaN if this launch has failed.
  __device__ __forceinline__ void receive(f32 (&sum)[LANE], int lane, bool on, bool& failed) const {
    if (!SELF && distance(lane) == 0) return;
    const u64 at = slices.exchange.region[0] + offset(slices.epoch, lane);
    Sum p;
    SEAMLINE_UNROLL
    for (int w = 0; w < WORDS; w++) p.w[w] = 0;
    u64 since = 0;
    bool wait = on && !failed, late = false;
    for (u32 tries = 1; wait; tries++) {
      u32 largest = 0;
      SEAMLINE_UNROLL
      for (int w = 0; w < WORDS; w += 4) device::exchange_load16(&p.w[w], (const void*)(at + w * 4), true);
      SEAMLINE_UNROLL
      for (int w = 0; w < WORDS; w++) largest = device::max(largest, p.w[w]);
      wait = largest == EMPTY;
      if (wait && tries % 64 == 0 && slices.expired(since)) {
        late = true;
        break;
      }
    }
    if (late) {
      failed = true;
      report(lane);
    }
    nan_if(failed, p);
    SEAMLINE_UNROLL
    for (int j = 0; j < LANE; j++) sum[j] = get(p, j);
  }

  // Says that a sum has not come. Its owner may itself wait: if this rank lacks a slice of a block that it owns, who
  // has not sent it is missing, and otherwise the owner.
  __device__ __forceinline__ void report(int lane) const {
    if (device::control_exchange_if_zero(&slices.status->fault, 1) != 0) return;
    const int rank = (int)slices.exchange.rank;
    bool all = true;
    u32 peer = 0;
    if (rank < RowSums<Spec>::BLOCKS)
      peer = slices.missing(slices.exchange.region[0] + slices.offset(slices.epoch, rank * 32), all);
    slices.tell(all ? (u32)lane / 32 % RANKS : peer);
  }
};

// One cluster per token; in a launch of more tokens than clusters (WAVES) a cluster takes several, in each of the three
// loops in turn.
template <class Spec, class Geo, bool WAVES>
SEAMLINE_DEVICE void owner(const typename Spec::Args& args) {
  SEAMLINE_SHARED(f32, partials, RowSums<Spec>::COUNT);
  SEAMLINE_SHARED(u64, arrived, 2);
  typedef OwnedSlot<Spec, WAVES> SlotOf;
  Cluster<Spec, Geo> cluster{partials, arrived};
  typename Spec::template Row<Geo> row;
  typename SlotOf::Pack own[Geo::VECTORS];
  cluster.start();
  row.find();
  Spec::load_constants(args, row);
  device::grid_wait();
  if (Geo::EARLY_TRIGGER) device::grid_launch_dependents();
  row.failed = device::control_load(&args.status->fault) != 0;

  const u64 clusters = device::blocks() / Geo::CTAS, first = device::block() / Geo::CTAS;
  // Up to the collective: the slices leave, and the words of the launch before are emptied.
  u32 epoch;
  for (row.token = first;; row.token += clusters) {
    epoch = device::control_load(args.exchange.epochs + row.token);
    Spec::template load_inputs<true, !WAVES>(args, row);
    Spec::before_exchange(args, row, cluster);
    const SlotOf slot{args.exchange, args.status, row.token, epoch};
    SEAMLINE_UNROLL
    for (int v = 0; v < Geo::VECTORS; v++) {
      pack(own[v], row.exchanged[v]);
      if (row.channels[v] > 0 && !row.failed) slot.push(row.lane[v], own[v]);
    }
    SEAMLINE_UNROLL
    for (int v = 0; v < Geo::VECTORS; v++)
      if (row.channels[v] > 0 && !row.failed) slot.arm(row.lane[v]);
    if (!WAVES || row.token + clusters >= args.tokens) break;
  }
  // What this rank owes the others.
  for (row.token = first;; row.token += clusters) {
    if constexpr (WAVES) epoch = device::control_load(args.exchange.epochs + row.token);
    const SlotOf slot{args.exchange, args.status, row.token, epoch};
    SEAMLINE_UNROLL
    for (int v = 0; v < Geo::VECTORS; v++)
      if (row.channels[v] > 0) slot.sum_owned(row.exchanged[v], row.lane[v], own[v], row.failed);
    if (!WAVES || row.token + clusters >= args.tokens) break;
  }
  // From the collective on. A spare lane has nothing to wait for, but takes part in every barrier.
  for (row.token = first;; row.token += clusters) {
    if constexpr (WAVES) {
      epoch = device::control_load(args.exchange.epochs + row.token);
      Spec::template load_inputs<false, true>(args, row);
    }
    const SlotOf slot{args.exchange, args.status, row.token, epoch};
    SEAMLINE_UNROLL
    for (int v = 0; v < Geo::VECTORS; v++)
      slot.receive(row.exchanged[v], row.lane[v], row.channels[v] > 0, row.failed);
    Spec::after_exchange(args, row, cluster);
    // Every reader of the epoch is past a barrier: the last row sum's, or one for this purpose.
    if constexpr (!Spec::SUMS_AFTER_EXCHANGE) cluster.barrier();
    if (row.lane[0] == 0 && !row.failed) device::control_store(args.exchange.epochs + row.token, next_epoch(epoch));
    if (!WAVES || row.token + clusters >= args.tokens) break;
  }
  cluster.wait_for_start();
  if (!Geo::EARLY_TRIGGER) device::grid_launch_dependents();
}
