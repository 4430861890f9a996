// MoE finalize: the weighted sum of a token's top_k rows, in k order, in f32.

// COUNT consecutive row indices or weights, by the widest loads that [T, K] allows.
template <int K, int COUNT>
SEAMLINE_DEVICE void load_indices(const i32* p, i32 (&out)[COUNT]) {
  constexpr int WIDTH = K % 4 == 0 && COUNT % 4 == 0 ? 4 : K % 2 == 0 && COUNT % 2 == 0 ? 2 : 1;
  SEAMLINE_UNROLL
  for (int k = 0; k < COUNT; k += WIDTH) {
    if constexpr (WIDTH == 4) {
      Words<4> v = device::load_index16(p + k, true);
      SEAMLINE_UNROLL
      for (int j = 0; j < 4; j++) out[k + j] = (i32)v.w[j];
    } else if constexpr (WIDTH == 2) {
      Words<2> v = device::load_index8(p + k, true);
      SEAMLINE_UNROLL
      for (int j = 0; j < 2; j++) out[k + j] = (i32)v.w[j];
    } else {
      out[k] = (i32)device::load_index4(p + k, true);
    }
  }
}
template <int K, int COUNT>
SEAMLINE_DEVICE void load_weights(const f32* p, f32 (&out)[COUNT]) {
  i32 bits[COUNT];
  load_indices<K>(reinterpret_cast<const i32*>(p), bits);
  SEAMLINE_UNROLL
  for (int k = 0; k < COUNT; k++) out[k] = device::from_bits((u32)bits[k]);
}
template <int K, int COUNT, class W>
SEAMLINE_DEVICE void load_weights(const W* p, f32 (&out)[COUNT]) {
  SEAMLINE_UNROLL
  for (int k = 0; k < COUNT; k++) out[k] = load_element(p + k);
}
struct NoWeights {};
template <int K, int COUNT>
SEAMLINE_DEVICE void load_weights(const NoWeights*, f32 (&out)[COUNT]) {
  SEAMLINE_UNROLL
  for (int k = 0; k < COUNT; k++) out[k] = 1.0f;
}
template <class W>
SEAMLINE_DEVICE const W* weights_at(const W* p, u64 i) {
  return p + i;
}
SEAMLINE_DEVICE const NoWeights* weights_at(const NoWeights* p, u64) { return p; }

// Rows k = 0..COUNT of the batch at `map` and `weights`: all row loads are issued before the first is used. A row index
// outside 0..rows is a dropped expert, counted if it is not -1. Its row is not read, and its weight is -0.0, so that
// the product is -0.0: what can be added to any value and leave it as it was.
template <class Spec, int COUNT, class T, class W>
SEAMLINE_DEVICE Lane finalize_batch(Lane acc, const T* rows, u32 row_count, const i32* map, const W* weights,
                                    const Site& at, u32* out_of_range) {
  i32 index[COUNT];
  f32 weight[COUNT];
  Packed<T> row[COUNT];
  load_indices<Spec::TOP_K>(map, index);
  load_weights<Spec::TOP_K>(weights, weight);
  u32 strays = 0;
  SEAMLINE_UNROLL
  for (int k = 0; k < COUNT; k++) {
    const bool held = (u32)index[k] < row_count;
    row[k] = load_lane<Constant, T, Spec::HIDDEN>(rows + (i64)index[k] * Spec::HIDDEN, at, held);
    weight[k] = held ? weight[k] : -0.0f;
    strays += !held && index[k] != -1;
  }
  if (strays > 0 && at.lane == 0) device::control_add(out_of_range, strays);
  SEAMLINE_UNROLL
  for (int k = 0; k < COUNT; k++) {
    Lane x = unpack(row[k]);
    SEAMLINE_UNROLL
    for (int j = 0; j < LANE; j++) acc.x[j] = device::fma(x.x[j], weight[k], acc.x[j]);
  }
  return acc;
}

// `acc = fma(row, weight, acc)` from +0.0 for k in order, BATCH rows at a time.
template <class Spec, int BATCH, class T, class W>
SEAMLINE_DEVICE Lane finalize(const T* rows, u64 row_count, const i32* map, const W* weights, const Site& at,
                              u32* out_of_range) {
  constexpr int K = Spec::TOP_K, TAIL = K % BATCH;
  const u32 count = row_count < 0x7FFFFFFFull ? (u32)row_count : 0x7FFFFFFFu;
  Lane acc = splat(0.0f);
  SEAMLINE_UNROLL
  for (int k = 0; k + BATCH <= K; k += BATCH)
    acc = finalize_batch<Spec, BATCH>(acc, rows, count, map + at.token * K + k, weights_at(weights, at.token * K + k),
                                      at, out_of_range);
  if constexpr (TAIL > 0)
    acc = finalize_batch<Spec, TAIL>(acc, rows, count, map + at.token * K + (K - TAIL),
                                     weights_at(weights, at.token * K + (K - TAIL)), at, out_of_range);
  return acc;
}
