// Exchange memory and its protocol.
//
// Each rank owns a region: three generations of slots, one slot per token, in a slot one wire row from every rank. The
// data is its own flag: an empty word is 0xFFFFFFFF, which no written word equals, because stored NaNs are canonical.
// Launch e of a slot writes generation e mod 3 in the regions of the other ranks, polls that generation in its own
// region, and empties generation e - 1 there. Reuse is safe: before a rank leaves launch e it has seen a word of launch
// e from every rank it writes to, so that rank had ended launch e - 1, in which it emptied generation e - 2 = e + 1 mod
// 3, the one that launch e + 1 will write.
//
// Every 32-bit word is checked, as bits. A slot's epoch counts its launches: a launch with fewer tokens leaves the
// others alone.

constexpr u32 EMPTY = 0xFFFFFFFFu;
constexpr u32 EPOCHS = 3u << 30;  // a multiple of 3: the generation goes on across the wrap
constexpr u64 FAULT_CHECK_NS = 1000000;

SEAMLINE_DEVICE u32 next_epoch(u32 epoch) { return epoch + 1 == EPOCHS ? 0 : epoch + 1; }

// This rank's control words. The first fault wins; it stays until the group is reset.
struct Status {
  u32 fault;  // 0, or 1 once a poll has timed out: every later launch reads it
  u32 rank, peer, slot, epoch;
  u32 out_of_range;  // row indices outside -1..P, since the group was made
};

// What the protocol needs of the arguments, beside the status.
template <int RANKS>
struct Exchange {
  u64 region[RANKS];  // of the i-th rank after this one: ranks begin with different peers, so that no link is
                      // everyone's first
  u32* epochs;        // by slot
  u32* host_status;   // the mirror of `status` in host memory
  u64 timeout_ns;
  u64 generation_bytes;
  u64 rank;
};

// One lane of a slot. With SELF, this rank's own lane travels through its region too, for a launch that cannot keep it
// in registers between sending and receiving. A launch without SELF does not empty that row; it need not, because the
// thread that reads it is the one that wrote it.
template <class Spec, bool SELF>
struct Slot {
  typedef typename Spec::Args Args;
  typedef Packed<typename Spec::Wire> Pack;
  static constexpr int WORDS = sizeof(Pack) / 4;
  static constexpr u64 ROW_BYTES = (u64)round_up(Spec::HIDDEN, LANE) * sizeof(typename Spec::Wire);

  const Args& args;
  u64 index;
  u32 epoch;
  int lane;

  // Where the lane of rank `from` lies in a region.
  __device__ __forceinline__ u64 offset(u32 epoch, u32 from) const {
    return (epoch % 3) * args.exchange.generation_bytes + (index * Spec::RANKS + from) * ROW_BYTES +
           (u64)lane * sizeof(Pack);
  }
  // Sends the lane to every rank.
  __device__ __forceinline__ void push(const Pack& p, bool on) const {
    const u64 to = offset(epoch, (u32)args.exchange.rank);
    SEAMLINE_UNROLL
    for (int i = SELF ? 0 : 1; i < Spec::RANKS; i++) {
      SEAMLINE_UNROLL
      for (int w = 0; w < WORDS; w += 4)
        device::exchange_push16((void*)(args.exchange.region[i] + to + w * 4),
                                Words<4>{{p.w[w], p.w[w + 1], p.w[w + 2], p.w[w + 3]}}, on);
    }
  }

  // Empties the lane's words of the launch before, in this rank's own region.
  __device__ __forceinline__ void arm(bool on) const {
    const u64 to = args.exchange.region[0] + offset(epoch + 2, 0);
    SEAMLINE_UNROLL
    for (int q = 0; q < Spec::RANKS; q++) SEAMLINE_UNROLL
    for (int w = 0; w < WORDS; w += 4)
      device::exchange_arm16((void*)(to + q * ROW_BYTES + w * 4), Words<4>{{EMPTY, EMPTY, EMPTY, EMPTY}},
                             on && (SELF || q != (int)args.exchange.rank));
  }

  // Waits for the lane of every rank and adds them, from rank 0, in rank order. NaN if this launch has failed.
  __device__ __forceinline__ Lane gather(const Pack& own, bool on, bool& failed) const {
    const u64 at = args.exchange.region[0] + offset(epoch, 0);
    Pack from[Spec::RANKS];
    SEAMLINE_UNROLL
    for (int q = 0; q < Spec::RANKS; q++) from[q] = own;
    u64 since = 0;
    for (u32 tries = 1; on && !failed; tries++) {
      SEAMLINE_UNROLL
      for (int q = 0; q < Spec::RANKS; q++) SEAMLINE_UNROLL
      for (int w = 0; w < WORDS; w += 4)
        device::exchange_load16(&from[q].w[w], (const void*)(at + q * ROW_BYTES + w * 4),
                                SELF || q != (int)args.exchange.rank);
      // No written word is as large as an empty one.
      u32 largest = 0;
      SEAMLINE_UNROLL
      for (int q = 0; q < Spec::RANKS; q++) SEAMLINE_UNROLL
      for (int w = 0; w < WORDS; w++) largest = device::max(largest, from[q].w[w]);
      if (largest != EMPTY) break;
      if (tries % 64 == 0) failed = give_up(from, since);
    }
    Lane sum = unpack(from[0]);
    SEAMLINE_UNROLL
    for (int q = 1; q < Spec::RANKS; q++) sum = add(sum, unpack(from[q]));
    return failed ? splat(device::from_bits(CANONICAL_NAN)) : sum;
  }

  // Whether a poll that began about `since` (0 at first) should end: another thread has found a fault, or the time is
  // over.
  __device__ __forceinline__ bool give_up(const Pack (&from)[Spec::RANKS], u64& since) const {
    const u64 now = device::clock_ns();
    if (since == 0) since = now;
    if (now - since < FAULT_CHECK_NS) return false;
    if (device::control_load(&args.status->fault) != 0) return true;
    if (now - since < args.exchange.timeout_ns) return false;
    if (device::control_exchange_if_zero(&args.status->fault, 1) == 0) {
      u32 missing = 0;
      SEAMLINE_UNROLL
      for (int q = Spec::RANKS - 1; q >= 0; q--) SEAMLINE_UNROLL
      for (int w = 0; w < WORDS; w++)
        if (from[q].w[w] == EMPTY) missing = q;
      const u32 words[4] = {(u32)args.exchange.rank, missing, (u32)index, epoch};
      SEAMLINE_UNROLL
      for (int i = 0; i < 4; i++) {
        device::control_store(&args.status->rank + i, words[i]);
        device::control_store(args.exchange.host_status + 1 + i, words[i]);
      }
      device::control_release(args.exchange.host_status, 1);
    }
    return true;
  }
};
