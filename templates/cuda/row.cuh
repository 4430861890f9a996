// A row is H channels of one token, dealt over the CTAs of a cluster:
//   lane = (vector * CTAS + cluster rank) * THREADS + thread.
// Phases are the straight-line pieces of a pattern between row sums and the exchange.

// How a launch deals a row: CTAS blocks of THREADS threads, VECTORS lanes a thread; finalize asks for BATCH rows at
// once.
template <int CTAS_, int THREADS_, int VECTORS_, int BATCH_, bool STREAMING_, bool EARLY_TRIGGER_>
struct Geometry {
  static constexpr int CTAS = CTAS_, THREADS = THREADS_, VECTORS = VECTORS_, BATCH = BATCH_;
  static constexpr bool STREAMING = STREAMING_, EARLY_TRIGGER = EARLY_TRIGGER_;
  static constexpr int STRIDE = CTAS * THREADS;
};

// A thread's part of one token.
template <class Spec, class Geo>
struct Row {
  Site at[Geo::VECTORS];
  typename Spec::Constants constants[Geo::VECTORS];
  typename Spec::Inputs inputs[Geo::VECTORS];
  typename Spec::Live live[Geo::VECTORS];
  typename Spec::Scalars scalars;
  Lane exchanged[Geo::VECTORS];  // what goes into the collective, then what comes out

  SEAMLINE_DEVICE int lane(int v) {
    return v * Geo::STRIDE + int(Geo::CTAS > 1 ? device::cluster_rank() : 0) * Geo::THREADS + int(device::thread());
  }

  // The lanes of this thread, with what is constant; before the wait.
  __device__ __forceinline__ void begin(const typename Spec::Args& args) {
    SEAMLINE_UNROLL
    for (int v = 0; v < Geo::VECTORS; v++) {
      int left = Spec::HIDDEN - lane(v) * LANE;
      at[v] = Site{0, lane(v), left < 0 ? 0 : left < LANE ? left : LANE, false};
      Spec::load_constants(args, at[v], constants[v]);
    }
  }
  // Turns to `token`, and asks for what has a fixed address: what the phases up to the exchange need (BEFORE), what the
  // others need (AFTER), or both.
  template <bool BEFORE, bool AFTER>
  __device__ __forceinline__ void turn_to(const typename Spec::Args& args, u64 token, bool failed) {
    SEAMLINE_UNROLL
    for (int v = 0; v < Geo::VECTORS; v++) {
      at[v].token = token;
      at[v].failed = failed;
      Spec::template load_inputs<BEFORE, AFTER>(args, at[v], inputs[v]);
    }
  }
};

// Partial sums of a token's blocks of 256 channels, twice: a sum's readers are past the barrier of the next sum before
// the one after it writes here again.
template <class Spec>
struct RowSums {
  static constexpr int BLOCKS = (Spec::HIDDEN + ROW_BLOCK - 1) / ROW_BLOCK;
  static constexpr int STRIDE = round_up(BLOCKS, 4);
  static constexpr int COUNT = 2 * (Spec::MAX_SUMS > 0 ? Spec::MAX_SUMS : 1) * STRIDE;
};

// Sum or sum of squares of a lane, in order from +0.0. Channels that do not exist give +0.0.
template <int HIDDEN, bool SQUARES>
SEAMLINE_DEVICE f32 sum_lane(Lane a, const Site& at) {
  f32 s = 0.0f;
  SEAMLINE_UNROLL
  for (int j = 0; j < LANE; j++) {
    const f32 x = HIDDEN % LANE == 0 || j < at.channels ? a.x[j] : 0.0f;
    s = SQUARES ? device::fma(x, x, s) : add(s, x);
  }
  return at.channels > 0 ? s : 0.0f;
}
template <int HIDDEN>
SEAMLINE_DEVICE f32 lane_sum(Lane a, const Site& at) {
  return sum_lane<HIDDEN, false>(a, at);
}
template <int HIDDEN>
SEAMLINE_DEVICE f32 lane_sum_of_squares(Lane a, const Site& at) {
  return sum_lane<HIDDEN, true>(a, at);
}

// State of the cluster barrier and of the partial sums' double buffer.
template <class Spec, class Geo>
struct Cluster {
  f32* partials;
  bool started;  // every CTA of the cluster is known to run: its shared memory may be written
  int turn;

  // Arrives at the barrier that says so; the wait comes as late as possible.
  SEAMLINE_DEVICE Cluster start(f32* partials) {
    if constexpr (Geo::CTAS > 1) device::cluster_arrive_relaxed();
    return Cluster{partials, false, 0};
  }
  __device__ __forceinline__ void wait_for_start() {
    if constexpr (Geo::CTAS > 1) {
      if (!started) device::cluster_wait();
      started = true;
    }
  }
  // Every thread of the cluster has come this far.
  __device__ __forceinline__ void barrier() {
    if constexpr (Geo::CTAS > 1) {
      wait_for_start();
      device::cluster_arrive();
      device::cluster_wait();
    } else {
      device::block_barrier();
    }
  }

  // The row sum's fixed tree: a butterfly over the 32 lanes of a block of 256 channels; block b joins chain b mod 4 in
  // index order; (c0 + c1) + (c2 + c3). It depends on H alone, not on how the row is dealt.
  template <int SUMS>
  __device__ __forceinline__ void reduce(const f32 (&partial)[Geo::VECTORS][SUMS], f32 (&total)[SUMS]) {
    typedef RowSums<Spec> Sums;
    f32* buffer = partials + turn * (Sums::COUNT / 2);
    turn ^= 1;
    wait_for_start();
    SEAMLINE_UNROLL
    for (int v = 0; v < Geo::VECTORS; v++) {
      int block = Row<Spec, Geo>::lane(v) / 32;
      SEAMLINE_UNROLL
      for (int s = 0; s < SUMS; s++) {
        f32 x = partial[v][s];
        SEAMLINE_UNROLL
        for (u32 mask = 16; mask > 0; mask >>= 1) x = add(x, device::shuffle_xor(x, mask));
        u32 to = device::thread() % 32;
        if (block < Sums::BLOCKS && to < Geo::CTAS) {
          if constexpr (Geo::CTAS > 1)
            device::store_cluster(buffer + s * Sums::STRIDE + block, to, x);
          else
            device::store_shared(buffer + s * Sums::STRIDE + block, x);
        }
      }
    }
    barrier();
    SEAMLINE_UNROLL
    for (int s = 0; s < SUMS; s++) {
      f32 chain[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      SEAMLINE_UNROLL
      for (int b = 0; b < Sums::BLOCKS; b++)
        chain[b % 4] = add(chain[b % 4], device::load_shared(buffer + s * Sums::STRIDE + b));
      total[s] = add(add(chain[0], chain[1]), add(chain[2], chain[3]));
    }
  }
};

// Runs phases FIRST..=LAST of one token, with the row sums that end them.
template <class Spec, class Geo, int FIRST, int LAST>
SEAMLINE_DEVICE void run_phases(const typename Spec::Args& args, Row<Spec, Geo>& row, Cluster<Spec, Geo>& cluster) {
  constexpr int SUMS = Spec::template sums<FIRST>();
  f32 partial[Geo::VECTORS][SUMS > 0 ? SUMS : 1];
  Spec::scalars(Int<FIRST>{}, args, row.at[0], row.inputs[0], row.scalars);
  SEAMLINE_UNROLL
  for (int v = 0; v < Geo::VECTORS; v++)
    Spec::template phase<Geo>(Int<FIRST>{}, args, row.at[v], row.constants[v], row.inputs[v], row.scalars, row.live[v],
                              row.exchanged[v], partial[v]);
  if constexpr (SUMS > 0) {
    f32 total[SUMS];
    cluster.reduce(partial, total);
    Spec::totals(Int<FIRST>{}, total, row.scalars);
  }
  if constexpr (FIRST < LAST) run_phases<Spec, Geo, FIRST + 1, LAST>(args, row, cluster);
}
