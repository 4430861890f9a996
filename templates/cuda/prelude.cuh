// Vocabulary of generated code. A thread works on lanes: 8 neighbouring channels of one token, in f32. 32 lanes of a
// warp are one block of 256 channels, the unit of the row sum's fixed tree.

// Storage types are tags: bits are converted by packs, never by C++.
struct bf16 {
  u16 bits;
};
struct f16 {
  u16 bits;
};
typedef float f32;

// A scalar argument: one 8-byte slot.
struct alignas(8) Scalar {
  f32 value;
  u32 unused;
};

// A value as a type, to choose an overload by.
template <int N>
struct Int {
  static constexpr int VALUE = N;
};

constexpr int LANE = 8;               // channels of a lane
constexpr int ROW_BLOCK = 32 * LANE;  // channels of a warp
constexpr u32 CANONICAL_NAN = 0x7FFFFFFF;

SEAMLINE_CONSTEXPR int greatest_common_divisor(int a, int b) { return b == 0 ? a : greatest_common_divisor(b, a % b); }
SEAMLINE_CONSTEXPR int round_up(int x, int to) { return (x + to - 1) / to * to; }

struct Lane {
  f32 x[LANE];
};

SEAMLINE_DEVICE Lane splat(f32 x) {
  Lane r;
  SEAMLINE_UNROLL
  for (int j = 0; j < LANE; j++) r.x[j] = x;
  return r;
}

// Elementwise arithmetic, each operation rounded once; a scalar operand stands for every channel.
#define SEAMLINE_BINARY(name, op)                                        \
  SEAMLINE_DEVICE f32 name(f32 a, f32 b) { return a op b; }              \
  SEAMLINE_DEVICE Lane name(Lane a, Lane b) {                            \
    SEAMLINE_UNROLL                                                      \
    for (int j = 0; j < LANE; j++) a.x[j] = a.x[j] op b.x[j];            \
    return a;                                                            \
  }                                                                      \
  SEAMLINE_DEVICE Lane name(Lane a, f32 b) { return name(a, splat(b)); } \
  SEAMLINE_DEVICE Lane name(f32 a, Lane b) { return name(splat(a), b); }
SEAMLINE_BINARY(add, +)
SEAMLINE_BINARY(sub, -)
SEAMLINE_BINARY(mul, *)
SEAMLINE_DEVICE f32 div(f32 a, f32 b) { return device::divide(a, b); }
SEAMLINE_DEVICE f32 sqrt(f32 x) { return device::sqrt(x); }
SEAMLINE_DEVICE f32 reciprocal(f32 x) { return device::reciprocal(x); }
SEAMLINE_DEVICE f32 neg(f32 a) { return device::from_bits(device::to_bits(a) ^ 0x80000000u); }
SEAMLINE_DEVICE Lane neg(Lane a) {
  SEAMLINE_UNROLL
  for (int j = 0; j < LANE; j++) a.x[j] = neg(a.x[j]);
  return a;
}

// A lane as stored: 4 words of 16-bit elements, or 8 words of f32.
template <class T>
struct Packed {
  u32 w[LANE * sizeof(T) / 4];
};

template <class T>
SEAMLINE_DEVICE Packed<T> filled(u32 word) {
  Packed<T> p;
  SEAMLINE_UNROLL
  for (int j = 0; j < int(sizeof(p) / 4); j++) p.w[j] = word;
  return p;
}

SEAMLINE_DEVICE Lane unpack(Packed<bf16> p) {
  Lane r;
  SEAMLINE_UNROLL
  for (int j = 0; j < LANE / 2; j++) {
    r.x[2 * j] = device::from_bits(p.w[j] << 16);
    r.x[2 * j + 1] = device::from_bits(p.w[j] & 0xFFFF0000u);
  }
  return r;
}
SEAMLINE_DEVICE Lane unpack(Packed<f16> p) {
  Lane r;
  SEAMLINE_UNROLL
  for (int j = 0; j < LANE / 2; j++) {
    r.x[2 * j] = device::from_f16((u16)(p.w[j] & 0xFFFFu));
    r.x[2 * j + 1] = device::from_f16((u16)(p.w[j] >> 16));
  }
  return r;
}
SEAMLINE_DEVICE Lane unpack(Packed<f32> p) {
  Lane r;
  SEAMLINE_UNROLL
  for (int j = 0; j < LANE; j++) r.x[j] = device::from_bits(p.w[j]);
  return r;
}

// Rounding to storage: to nearest even, NaN canonical. The only places where a value is rounded to a dtype.
template <class T>
struct Pack;
template <>
struct Pack<bf16> {
  SEAMLINE_DEVICE Packed<bf16> lane(Lane a) {
    Packed<bf16> p;
    SEAMLINE_UNROLL
    for (int j = 0; j < LANE / 2; j++) p.w[j] = device::to_bf16x2(a.x[2 * j], a.x[2 * j + 1]);
    return p;
  }
};
template <>
struct Pack<f16> {
  SEAMLINE_DEVICE Packed<f16> lane(Lane a) {
    Packed<f16> p;
    SEAMLINE_UNROLL
    for (int j = 0; j < LANE / 2; j++) p.w[j] = device::to_f16x2(a.x[2 * j], a.x[2 * j + 1]);
    return p;
  }
};
template <>
struct Pack<f32> {
  SEAMLINE_DEVICE Packed<f32> lane(Lane a) {
    Packed<f32> p;
    SEAMLINE_UNROLL
    for (int j = 0; j < LANE; j++) p.w[j] = a.x[j] != a.x[j] ? CANONICAL_NAN : device::to_bits(a.x[j]);
    return p;
  }
};
template <class T>
SEAMLINE_DEVICE Packed<T> pack(Lane a) {
  return Pack<T>::lane(a);
}

// Where a thread works: one lane of one token.
struct Site {
  u64 token;     // of this launch
  int lane;      // index within the row
  int channels;  // that exist: 8, fewer in a ragged row's last lane, 0 in a spare lane
  bool failed;   // this launch has failed: store NaN
};

// A row of H elements is as aligned as its size allows; lanes of a ragged row are moved by narrower accesses.
template <class T, int HIDDEN>
struct Access {
  static constexpr int BYTES = greatest_common_divisor(HIDDEN * int(sizeof(T)), 16);
  static constexpr int WIDTH = BYTES / int(sizeof(T));  // elements
};

// The ways to reach memory, by name, for the accesses below.
struct Constant {
  SEAMLINE_DEVICE Words<4> get16(const void* p, bool on) { return device::load_const16(p, on); }
  SEAMLINE_DEVICE Words<2> get8(const void* p, bool on) { return device::load_const8(p, on); }
  SEAMLINE_DEVICE u32 get4(const void* p, bool on) { return device::load_const4(p, on); }
  SEAMLINE_DEVICE u16 get2(const void* p, bool on) { return device::load_const2(p, on); }
};
struct InPlace {
  SEAMLINE_DEVICE Words<4> get16(const void* p, bool on) { return device::load16(p, on); }
  SEAMLINE_DEVICE Words<2> get8(const void* p, bool on) { return device::load8(p, on); }
  SEAMLINE_DEVICE u32 get4(const void* p, bool on) { return device::load4(p, on); }
  SEAMLINE_DEVICE u16 get2(const void* p, bool on) { return device::load2(p, on); }
};

// Loads the lane at `row`; channels that do not exist, or are not wanted, read as zero.
template <class From, class T, int HIDDEN>
SEAMLINE_DEVICE Packed<T> load_lane(const T* row, const Site& at, bool wanted = true) {
  constexpr int BYTES = Access<T, HIDDEN>::BYTES, WIDTH = Access<T, HIDDEN>::WIDTH;
  Packed<T> p = filled<T>(0);
  const T* from = row + (i64)at.lane * LANE;
  SEAMLINE_UNROLL
  for (int i = 0; i < LANE; i += WIDTH) {
    const bool on = i < at.channels && wanted;
    if constexpr (BYTES == 16) {
      Words<4> v = From::get16(from + i, on);
      SEAMLINE_UNROLL
      for (int j = 0; j < 4; j++) p.w[i / WIDTH * 4 + j] = v.w[j];
    } else if constexpr (BYTES == 8) {
      Words<2> v = From::get8(from + i, on);
      SEAMLINE_UNROLL
      for (int j = 0; j < 2; j++) p.w[i / WIDTH * 2 + j] = v.w[j];
    } else if constexpr (BYTES == 4) {
      p.w[i / WIDTH] = From::get4(from + i, on);
    } else {
      p.w[i / 2] |= (u32)From::get2(from + i, on) << (i % 2 * 16);
    }
  }
  return p;
}

template <bool STREAMING>
struct Store {
  SEAMLINE_DEVICE void put16(void* p, Words<4> v, bool on) { device::store16(p, v, on); }
  SEAMLINE_DEVICE void put8(void* p, Words<2> v, bool on) { device::store8(p, v, on); }
  SEAMLINE_DEVICE void put4(void* p, u32 v, bool on) { device::store4(p, v, on); }
  SEAMLINE_DEVICE void put2(void* p, u16 v, bool on) { device::store2(p, v, on); }
};
template <>
struct Store<true> {
  SEAMLINE_DEVICE void put16(void* p, Words<4> v, bool on) { device::store_streaming16(p, v, on); }
  SEAMLINE_DEVICE void put8(void* p, Words<2> v, bool on) { device::store_streaming8(p, v, on); }
  SEAMLINE_DEVICE void put4(void* p, u32 v, bool on) { device::store_streaming4(p, v, on); }
  SEAMLINE_DEVICE void put2(void* p, u16 v, bool on) { device::store_streaming2(p, v, on); }
};

template <bool STREAMING, class T, int HIDDEN>
SEAMLINE_DEVICE void store_lane(T* row, const Site& at, Packed<T> p) {
  typedef Store<STREAMING> To;
  constexpr int BYTES = Access<T, HIDDEN>::BYTES, WIDTH = Access<T, HIDDEN>::WIDTH;
  T* to = row + (i64)at.lane * LANE;
  SEAMLINE_UNROLL
  for (int i = 0; i < LANE; i += WIDTH) {
    const bool on = i < at.channels;
    const int w = i * int(sizeof(T)) / 4;
    if constexpr (BYTES == 16)
      To::put16(to + i, Words<4>{{p.w[w], p.w[w + 1], p.w[w + 2], p.w[w + 3]}}, on);
    else if constexpr (BYTES == 8)
      To::put8(to + i, Words<2>{{p.w[w], p.w[w + 1]}}, on);
    else if constexpr (BYTES == 4)
      To::put4(to + i, p.w[w], on);
    else
      To::put2(to + i, (u16)(p.w[w] >> (i % 2 * 16)), on);
  }
}

// What a launch that has failed stores.
template <class T>
SEAMLINE_DEVICE Packed<T> nan_if(bool failed, Packed<T> p) {
  constexpr u32 WORD = sizeof(T) == 2 ? 0x7FFF7FFFu : CANONICAL_NAN;
  SEAMLINE_UNROLL
  for (int j = 0; j < int(sizeof(p) / 4); j++) p.w[j] = failed ? WORD : p.w[j];
  return p;
}

// One element per token or per (token, expert).
SEAMLINE_DEVICE f32 load_element(const f32* p) { return device::from_bits(device::load_index4(p, true)); }
SEAMLINE_DEVICE f32 load_element(const bf16* p) { return device::from_bits((u32)device::load_index2(p, true) << 16); }
SEAMLINE_DEVICE f32 load_element(const f16* p) { return device::from_f16(device::load_index2(p, true)); }
