// Vocabulary of generated code. A thread works on lanes: 8 neighbouring channels of one token. 32 lanes of a warp are
// one block of 256 channels, the unit of the row sum's fixed tree.
//
// Generated code computes channel by channel in f32, `for (int j = 0; j < LANE; j++)`, and functions write to what they
// are given instead of returning arrays: a compiler that has to take apart a struct for every operation on eight values
// takes half as long again for the same instructions.

// Storage types are tags: bits are converted by packs, never by C++.
struct bf16 {
  u16 bits;
};
struct f16 {
  u16 bits;
};
struct e4m3 {
  unsigned char bits;
};
typedef float f32;

// A scalar argument: one 8-byte slot.
struct alignas(8) Scalar {
  f32 value;
  u32 unused;
};

constexpr int LANE = 8;               // channels of a lane
constexpr int ROW_BLOCK = 32 * LANE;  // channels of a warp
constexpr u32 CANONICAL_NAN = 0x7FFFFFFF;

SEAMLINE_CONSTEXPR int greatest_common_divisor(int a, int b) { return b == 0 ? a : greatest_common_divisor(b, a % b); }
SEAMLINE_CONSTEXPR int round_up(int x, int to) { return (x + to - 1) / to * to; }

SEAMLINE_DEVICE f32 neg(f32 x) { return device::from_bits(device::to_bits(x) ^ 0x80000000u); }

// The larger of two magnitudes as bits, so that a NaN wins.
SEAMLINE_DEVICE f32 max_magnitude(f32 a, f32 b) {
  return device::from_bits(device::max(device::to_bits(a) & 0x7FFFFFFFu, device::to_bits(b) & 0x7FFFFFFFu));
}

// A lane as stored: 2 words of e4m3, 4 of 16-bit elements, or 8 of f32.
template <class T>
struct Packed {
  u32 w[LANE * sizeof(T) / 4];
};

// Channel j of a lane.
SEAMLINE_DEVICE f32 get(const Packed<bf16>& p, int j) {
  return device::from_bits(p.w[j / 2] << (16 - j % 2 * 16) & 0xFFFF0000u);
}
SEAMLINE_DEVICE f32 get(const Packed<f16>& p, int j) { return device::from_f16((u16)(p.w[j / 2] >> (j % 2 * 16))); }
SEAMLINE_DEVICE f32 get(const Packed<f32>& p, int j) { return device::from_bits(p.w[j]); }

// Rounding to storage: to nearest even, NaN canonical. The only places where a value is rounded to a dtype.
SEAMLINE_DEVICE void pack(Packed<bf16>& to, const f32 (&x)[LANE]) {
  SEAMLINE_UNROLL
  for (int w = 0; w < LANE / 2; w++) to.w[w] = device::to_bf16x2(x[2 * w], x[2 * w + 1]);
}
SEAMLINE_DEVICE void pack(Packed<f16>& to, const f32 (&x)[LANE]) {
  SEAMLINE_UNROLL
  for (int w = 0; w < LANE / 2; w++) to.w[w] = device::to_f16x2(x[2 * w], x[2 * w + 1]);
}
SEAMLINE_DEVICE void pack(Packed<f32>& to, const f32 (&x)[LANE]) {
  SEAMLINE_UNROLL
  for (int w = 0; w < LANE; w++) to.w[w] = x[w] != x[w] ? CANONICAL_NAN : device::to_bits(x[w]);
}

// What is beyond 448 becomes that.
SEAMLINE_DEVICE void pack(Packed<e4m3>& to, const f32 (&x)[LANE]) {
  SEAMLINE_UNROLL
  for (int w = 0; w < LANE / 4; w++)
    to.w[w] = device::to_e4m3x2(x[4 * w], x[4 * w + 1]) | device::to_e4m3x2(x[4 * w + 2], x[4 * w + 3]) << 16;
}

// A row of H elements is as aligned as its size allows; lanes of a ragged row are moved by narrower accesses.
template <class T, int HIDDEN>
struct Access {
  static constexpr int BYTES = greatest_common_divisor(HIDDEN * int(sizeof(T)), LANE * sizeof(T) < 16 ? 8 : 16);
  static constexpr int WIDTH = BYTES / int(sizeof(T));  // elements
};

// The ways to read memory, by name.
struct Constant {
  SEAMLINE_DEVICE void get16(u32* w, const void* p, bool on) { device::load_const16(w, p, on); }
  SEAMLINE_DEVICE void get8(u32* w, const void* p, bool on) { device::load_const8(w, p, on); }
  SEAMLINE_DEVICE u32 get4(const void* p, bool on) { return device::load_const4(p, on); }
  SEAMLINE_DEVICE u16 get2(const void* p, bool on) { return device::load_const2(p, on); }
};
struct InPlace {
  SEAMLINE_DEVICE void get16(u32* w, const void* p, bool on) { device::load16(w, p, on); }
  SEAMLINE_DEVICE void get8(u32* w, const void* p, bool on) { device::load8(w, p, on); }
  SEAMLINE_DEVICE u32 get4(const void* p, bool on) { return device::load4(p, on); }
  SEAMLINE_DEVICE u16 get2(const void* p, bool on) { return device::load2(p, on); }
};

// Loads lane `lane` of `row`; channels from `channels` on read as zero.
template <class From, int HIDDEN, class T>
SEAMLINE_DEVICE void load_lane(Packed<T>& to, const T* row, int lane, int channels) {
  typedef Access<T, HIDDEN> Unit;
  const T* from = row + (i64)lane * LANE;
  SEAMLINE_UNROLL
  for (int i = 0; i < LANE; i += Unit::WIDTH) {
    u32* w = to.w + i * int(sizeof(T)) / 4;
    if constexpr (Unit::BYTES == 16)
      From::get16(w, from + i, i < channels);
    else if constexpr (Unit::BYTES == 8)
      From::get8(w, from + i, i < channels);
    else if constexpr (Unit::BYTES == 4)
      *w = From::get4(from + i, i < channels);
    else
      *w = (i % 2 == 0 ? 0 : *w) | (u32)From::get2(from + i, i < channels) << (i % 2 * 16);
  }
}

// The ways to write memory.
template <bool STREAMING>
struct Store {
  SEAMLINE_DEVICE void put16(void* p, const u32* w, bool on) { device::store16(p, w, on); }
  SEAMLINE_DEVICE void put8(void* p, const u32* w, bool on) { device::store8(p, w, on); }
  SEAMLINE_DEVICE void put4(void* p, u32 v, bool on) { device::store4(p, v, on); }
  SEAMLINE_DEVICE void put2(void* p, u16 v, bool on) { device::store2(p, v, on); }
  SEAMLINE_DEVICE void put1(void* p, u32 v, bool on) { device::store1(p, v, on); }
};
template <>
struct Store<true> {
  SEAMLINE_DEVICE void put16(void* p, const u32* w, bool on) { device::store_streaming16(p, w, on); }
  SEAMLINE_DEVICE void put8(void* p, const u32* w, bool on) { device::store_streaming8(p, w, on); }
  SEAMLINE_DEVICE void put4(void* p, u32 v, bool on) { device::store_streaming4(p, v, on); }
  SEAMLINE_DEVICE void put2(void* p, u16 v, bool on) { device::store_streaming2(p, v, on); }
  SEAMLINE_DEVICE void put1(void* p, u32 v, bool on) { device::store_streaming1(p, v, on); }
};

template <bool STREAMING, int HIDDEN, class T>
SEAMLINE_DEVICE void store_lane(T* row, int lane, int channels, const Packed<T>& p) {
  typedef Access<T, HIDDEN> Unit;
  T* to = row + (i64)lane * LANE;
  SEAMLINE_UNROLL
  for (int i = 0; i < LANE; i += Unit::WIDTH) {
    const u32* w = p.w + i * int(sizeof(T)) / 4;
    if constexpr (Unit::BYTES == 16)
      Store<STREAMING>::put16(to + i, w, i < channels);
    else if constexpr (Unit::BYTES == 8)
      Store<STREAMING>::put8(to + i, w, i < channels);
    else if constexpr (Unit::BYTES == 4)
      Store<STREAMING>::put4(to + i, *w, i < channels);
    else if constexpr (Unit::BYTES == 2)
      Store<STREAMING>::put2(to + i, (u16)(*w >> (i * int(sizeof(T)) % 4 * 8)), i < channels);
    else
      Store<STREAMING>::put1(to + i, *w >> (i % 4 * 8), i < channels);
  }
}

// What a launch that has failed stores, and what it takes for its peers' rows.
template <class T>
SEAMLINE_DEVICE void nan_if(bool failed, Packed<T>& p) {
  constexpr u32 WORD = sizeof(T) == 1 ? 0x7F7F7F7Fu : sizeof(T) == 2 ? 0x7FFF7FFFu : CANONICAL_NAN;
  SEAMLINE_UNROLL
  for (int w = 0; w < int(sizeof(p) / 4); w++) p.w[w] = failed ? WORD : p.w[w];
}

// One element per token or per (token, expert).
SEAMLINE_DEVICE f32 load_element(const f32* p) { return device::from_bits(device::load_index4(p)); }
SEAMLINE_DEVICE f32 load_element(const bf16* p) { return device::from_bits((u32)device::load_index2(p) << 16); }
SEAMLINE_DEVICE f32 load_element(const f16* p) { return device::from_f16(device::load_index2(p)); }

// What storing x as T leaves of it.
template <class T>
SEAMLINE_DEVICE f32 rounded(f32 x) {
  const f32 lane[LANE] = {x, x, x, x, x, x, x, x};
  Packed<T> packed;
  pack(packed, lane);
  return get(packed, 0);
}

// Stores a value per token that is rounded to T.
template <class T>
SEAMLINE_DEVICE void store_element(T* p, f32 x) {
  const f32 lane[LANE] = {x, x, x, x, x, x, x, x};
  Packed<T> packed;
  pack(packed, lane);
  if constexpr (sizeof(T) == 4)
    device::store4(p, packed.w[0], true);
  else
    device::store2(p, (u16)packed.w[0], true);
}
