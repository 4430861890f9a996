// MoE finalize: the weighted sum of a token's top_k rows, in k order, in f32.

// Stands for a pointer to weights that are all 1.
struct NoWeights {
  __device__ __forceinline__ NoWeights operator+(u64) const { return {}; }
};
SEAMLINE_DEVICE f32 load_element(NoWeights) { return 1.0f; }

// `sum = fma(row, weight, sum)` from +0.0 for rows k in order, from FIRST on, BATCH rows at a time: all loads of a
// batch are issued before the first is used. `map` and `weights` are the token's; lane k of each warp reads the batch's
// index and weight k, and the others have it from there. Rows lie STRIDE elements apart.
//
// A row index outside 0..P is a dropped expert, counted if it is not -1. Its row is not read, and its weight is -0.0,
// so that the product is -0.0: what can be added to any value and leave it as it was.
template <class Spec, int BATCH, int STRIDE, int FIRST = 0, class T, class W>
SEAMLINE_DEVICE void gather(f32 (&sum)[LANE], const T* rows, u64 row_count, const i32* map, W weights, int lane,
                              int channels, u32* out_of_range) {
  constexpr int COUNT = Spec::TOP_K - FIRST < BATCH ? Spec::TOP_K - FIRST : BATCH;
  static_assert(COUNT <= 32, "one lane of a warp for each row of a batch");
  const int own = int(device::thread() % 32);
  const int mine = FIRST + (own < COUNT ? own : 0);
  i32 index = (i32)device::load_index4(map + mine);
  f32 weight = load_element(weights + mine);
  if (index < 0 || (u64)index >= row_count) {
    // The row's first warp counts.
    if (index != -1 && lane < COUNT) device::control_add(out_of_range, 1);
    index = -1;
    weight = -0.0f;
  }
  if constexpr (FIRST == 0) {
    SEAMLINE_UNROLL
    for (int j = 0; j < LANE; j++) sum[j] = 0.0f;
  }
  Packed<T> row[COUNT];
  SEAMLINE_UNROLL
  for (int k = 0; k < COUNT; k++) {
    const i32 from = (i32)device::shuffle((u32)index, k);
    load_lane<Constant, greatest_common_divisor(Spec::HIDDEN, STRIDE)>(row[k], rows + (i64)from * STRIDE, lane, from < 0 ? 0 : channels);
  }
  SEAMLINE_UNROLL
  for (int k = 0; k < COUNT; k++) {
    const f32 w = device::from_bits(device::shuffle(device::to_bits(weight), k));
    SEAMLINE_UNROLL
    for (int j = 0; j < LANE; j++) sum[j] = device::fma(get(row[k], j), w, sum[j]);
  }
  if constexpr (FIRST + COUNT < Spec::TOP_K)
    gather<Spec, BATCH, STRIDE, FIRST + COUNT>(sum, rows, row_count, map, weights, lane, channels, out_of_range);
}
