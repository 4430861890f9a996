// A row is H channels of one token, dealt over the CTAs of a cluster:
//   lane = (vector * CTAS + cluster rank) * THREADS + thread.

// How a launch deals a row: CTAS blocks of THREADS threads, VECTORS lanes a thread; finalize asks for BATCH rows at
// once.
template <int CTAS_, int THREADS_, int VECTORS_, int BATCH_, bool STREAMING_, bool EARLY_TRIGGER_>
struct Geometry {
  static constexpr int CTAS = CTAS_, THREADS = THREADS_, VECTORS = VECTORS_, BATCH = BATCH_;
  static constexpr bool STREAMING = STREAMING_, EARLY_TRIGGER = EARLY_TRIGGER_;
  static constexpr int STRIDE = CTAS * THREADS;
};

// Where a thread works. What it holds there is the generated `Row`.
template <class Spec, class Geo>
struct Site {
  // Whether every thread has whole lanes.
  static constexpr bool FULL = Geo::STRIDE * Geo::VECTORS * LANE == Spec::HIDDEN;

  u64 token;                   // of this launch
  bool failed;                 // this launch has failed: store NaN
  int lane[Geo::VECTORS];      // index within the row
  int channels[Geo::VECTORS];  // that exist: 8, fewer in a ragged row's last lane, 0 in a spare lane

  __device__ __forceinline__ void find() {
    SEAMLINE_UNROLL
    for (int v = 0; v < Geo::VECTORS; v++) {
      const int cta = int(Geo::CTAS > 1 ? device::cluster_rank() : 0);
      lane[v] = (v * Geo::CTAS + cta) * Geo::THREADS + int(device::thread());
      const int left = Spec::HIDDEN - lane[v] * LANE;
      channels[v] = FULL || left > LANE ? LANE : left < 0 ? 0 : left;
    }
  }
};

// What a lane adds to a row sum, in order from +0.0. A channel that does not exist gives +0.0.
SEAMLINE_DEVICE f32 add_square(f32 sum, f32 x) { return device::fma(x, x, sum); }
SEAMLINE_DEVICE f32 existing(f32 x, int j, int channels) { return j < channels ? x : 0.0f; }

// How two partial results of a row reduction are joined. Both begin from +0.0.
struct Sum {
  SEAMLINE_DEVICE f32 join(f32 a, f32 b) { return a + b; }
};
struct MaxMagnitude {
  SEAMLINE_DEVICE f32 join(f32 a, f32 b) { return max_magnitude(a, b); }
};

// Partial sums of a token's blocks of 256 channels, twice, and in a cluster an mbarrier for each half. A half is written
// again by the sum after the next one, and by then its readers are done with it: who writes has the next sum, which has
// parts of all warps, and each of them had read this one before it sent its part. So the mbarrier is in the phase of the
// sum that it counts, too. A warp without a block sends nothing, so that nobody waits for it: it takes no part.
template <class Spec>
struct RowSums {
  static constexpr int BLOCKS = (Spec::HIDDEN + ROW_BLOCK - 1) / ROW_BLOCK;
  static constexpr int STRIDE = round_up(BLOCKS, 4);
  static constexpr int COUNT = 2 * (Spec::MAX_SUMS > 0 ? Spec::MAX_SUMS : 1) * STRIDE;
};

// State of the cluster barrier and of the row sums.
template <class Spec, class Geo>
struct Cluster {
  f32* partials;
  u64* arrived;          // an mbarrier for each half of `partials`: its sums are there
  bool started = false;  // every CTA of the cluster is known to run: its shared memory may be written
  int sums = 0;          // row sums so far

  // Arrives at the barrier that says so; the wait comes as late as possible.
  __device__ __forceinline__ void start() {
    if constexpr (Geo::CTAS > 1) {
      if (Spec::MAX_SUMS > 0 && device::thread() == 0) {
        device::mbarrier_init(arrived);
        device::mbarrier_init(arrived + 1);
      }
      device::cluster_arrive_relaxed();
    }
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

  // The row sum's fixed tree over what each lane has summed in order: a butterfly over the 32 lanes of a block of 256
  // channels; block b joins chain b mod 4 in index order; (c0 + c1) + (c2 + c3). It depends on H alone, not on how the
  // row is dealt.
  template <class Fold, int SUMS>
  __device__ __forceinline__ void reduce(const Site<Spec, Geo>& at, const f32 (&partial)[SUMS][Geo::VECTORS],
                                         f32 (&total)[SUMS]) {
    typedef RowSums<Spec> Sums;
    const int half = sums % 2, parity = sums / 2 % 2;
    sums++;
    f32* buffer = partials + half * (Sums::COUNT / 2);
    wait_for_start();
    if constexpr (Geo::CTAS > 1) {
      if (!at.FULL && at.lane[0] / 32 >= Sums::BLOCKS) {
        SEAMLINE_UNROLL
        for (int s = 0; s < SUMS; s++) total[s] = 0.0f;
        return;
      }
      if (device::thread() == 0) device::mbarrier_expect(arrived + half, SUMS * Sums::BLOCKS * sizeof(f32));
    }
    const u32 to = device::thread() % 32;
    SEAMLINE_UNROLL
    for (int s = 0; s < SUMS; s++) {
      SEAMLINE_UNROLL
      for (int v = 0; v < Geo::VECTORS; v++) {
        const int block = at.lane[v] / 32;
        f32 x = at.channels[v] > 0 ? partial[s][v] : 0.0f;
        SEAMLINE_UNROLL
        for (u32 mask = 16; mask > 0; mask >>= 1) x = Fold::join(x, device::shuffle_xor(x, mask));
        if ((at.FULL || block < Sums::BLOCKS) && to < Geo::CTAS) {
          if constexpr (Geo::CTAS > 1)
            device::store_async(buffer + s * Sums::STRIDE + block, arrived + half, to, x);
          else
            device::store_shared(buffer + s * Sums::STRIDE + block, x);
        }
      }
    }
    if constexpr (Geo::CTAS > 1)
      device::mbarrier_wait(arrived + half, parity);
    else
      barrier();
    SEAMLINE_UNROLL
    for (int s = 0; s < SUMS; s++) {
      f32 chain[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      SEAMLINE_UNROLL
      for (int b = 0; b < Sums::BLOCKS; b++)
        chain[b % 4] = Fold::join(chain[b % 4], device::load_shared(buffer + s * Sums::STRIDE + b));
      total[s] = Fold::join(Fold::join(chain[0], chain[1]), Fold::join(chain[2], chain[3]));
    }
  }
};
