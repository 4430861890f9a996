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

// What a slot holds: one wire row from every rank.
template <class Spec>
struct WireRows {
  static constexpr u64 STRIDE = (u64)round_up(Spec::HIDDEN, LANE) * sizeof(typename Spec::Wire);  // to the next rank
  static constexpr u64 SLOT_BYTES = Spec::RANKS * STRIDE;
  // Where rank 0's lane lies.
  SEAMLINE_DEVICE u64 place(int lane) { return (u64)lane * sizeof(Packed<typename Spec::Wire>); }
};

// A slot, in one launch. With SELF, this rank's own row travels through its region too, for a launch that cannot keep
// it in registers between sending and receiving. A launch without SELF does not empty that row; it need not, because
// the thread that reads it is the one that wrote it.
template <class Spec, bool SELF, class Rows = WireRows<Spec>>
struct Slot {
  typedef Packed<typename Spec::Wire> Pack;
  static constexpr int RANKS = Spec::RANKS, WORDS = sizeof(Pack) / 4;

  const Exchange<RANKS>& exchange;
  Status* status;
  u64 index;
  u32 epoch;

  // Where the lane of rank 0 lies in a region.
  __device__ __forceinline__ u64 offset(u32 epoch, int lane) const {
    return (epoch % 3) * exchange.generation_bytes + index * Rows::SLOT_BYTES + Rows::place(lane);
  }

  // Sends a lane to every rank.
  __device__ __forceinline__ void push(int lane, const Pack& p) const {
    const u64 to = offset(epoch, lane) + exchange.rank * Rows::STRIDE;
    SEAMLINE_UNROLL
    for (int i = SELF ? 0 : 1; i < RANKS; i++) {
      SEAMLINE_UNROLL
      for (int w = 0; w < WORDS; w += 4) device::exchange_push16((void*)(exchange.region[i] + to + w * 4), &p.w[w]);
    }
  }

  // Empties the lane's words of the launch before, in this rank's own region.
  __device__ __forceinline__ void arm(int lane) const {
    const u64 to = exchange.region[0] + offset(epoch + 2, lane);
    SEAMLINE_UNROLL
    for (int q = 0; q < RANKS; q++) {
      SEAMLINE_UNROLL
      for (int w = 0; w < WORDS; w += 4)
        device::exchange_arm16((void*)(to + q * Rows::STRIDE + w * 4), EMPTY, SELF || q != (int)exchange.rank);
    }
  }

  // Waits for the lane of every rank, and adds them from rank 0 in rank order. NaN if this launch has failed.
  __device__ __forceinline__ void gather(f32 (&sum)[LANE], int lane, const Pack& own, bool on, bool& failed) const {
    const u64 at = exchange.region[0] + offset(epoch, lane);
    Pack from[RANKS];
    SEAMLINE_UNROLL
    for (int q = 0; q < RANKS; q++) from[q] = own;
    u64 since = 0;
    bool wait = on && !failed, late = false;
    for (u32 tries = 1; wait; tries++) {
      u32 largest = 0;
      SEAMLINE_UNROLL
      for (int q = 0; q < RANKS; q++) {
        SEAMLINE_UNROLL
        for (int w = 0; w < WORDS; w += 4)
          device::exchange_load16(&from[q].w[w], (const void*)(at + q * Rows::STRIDE + w * 4),
                                  SELF || q != (int)exchange.rank);
      }
      SEAMLINE_UNROLL
      for (int q = 0; q < RANKS; q++) {
        SEAMLINE_UNROLL
        for (int w = 0; w < WORDS; w++) largest = device::max(largest, from[q].w[w]);
      }
      // No written word is as large as an empty one.
      wait = largest == EMPTY;
      if (wait && tries % 64 == 0 && expired(since)) {
        late = true;
        break;
      }
    }
    if (late) {
      failed = true;
      report(at);
    }
    nan_if(failed, from[0]);
    SEAMLINE_UNROLL
    for (int j = 0; j < LANE; j++) {
      sum[j] = get(from[0], j);
      SEAMLINE_UNROLL
      for (int q = 1; q < RANKS; q++) sum[j] = sum[j] + get(from[q], j);
    }
  }

  // Whether a poll should end: somebody has found a fault, or the time since this was first asked (`since` is 0) is
  // over.
  __device__ __forceinline__ bool expired(u64& since) const {
    const u64 now = device::clock_ns();
    if (since == 0) since = now;
    return now - since >= exchange.timeout_ns || device::control_load(&status->fault) != 0;
  }

  // Says that a poll of the lane at `at` has ended in vain, unless there is a fault already.
  __device__ __forceinline__ void report(u64 at) const {
    if (device::control_exchange_if_zero(&status->fault, 1) != 0) return;
    bool all;
    tell(missing(at, all));
  }

  // Who is missing: the first rank after this one whose lane at `at` is not there, or the last one if all have come.
  __device__ __forceinline__ u32 missing(u64 at, bool& all) const {
    u32 peer = 0, w[4] = {EMPTY, EMPTY, EMPTY, EMPTY};
    SEAMLINE_NO_UNROLL
    for (int i = 0; i < (RANKS - 1) * WORDS; i += 4) {
      peer = ((u32)exchange.rank + 1 + i / WORDS) % RANKS;
      device::exchange_load16(w, (const void*)(at + peer * Rows::STRIDE + i % WORDS * 4), true);
      if (device::max(device::max(w[0], w[1]), device::max(w[2], w[3])) == EMPTY) break;
    }
    all = device::max(device::max(w[0], w[1]), device::max(w[2], w[3])) != EMPTY;
    return peer;
  }

  // Writes down the fault, whose word is set: this slot waited for `peer`.
  __device__ __forceinline__ void tell(u32 peer) const {
    const u32 words[4] = {(u32)exchange.rank, peer, (u32)index, epoch};
    SEAMLINE_UNROLL
    for (int i = 0; i < 4; i++) {
      device::control_store(&status->rank + i, words[i]);
      device::control_store(exchange.host_status + 1 + i, words[i]);
    }
    device::control_release(exchange.host_status, 1);
  }
};
