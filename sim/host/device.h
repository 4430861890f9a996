// The device layer on a CPU: the twin of templates/cuda/device.cuh, with the same names. Each CUDA thread is a fiber. What
// computes is plain C++; what waits, or touches memory that the simulator watches, calls it through a table of functions.
//
// No header is included: a standard one costs more to compile than a kernel.

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

#define __device__
#define __forceinline__ inline
#define SEAMLINE_DEVICE static inline
#define SEAMLINE_CONSTEXPR static constexpr
#define SEAMLINE_KERNEL(threads, blocks_per_sm) extern "C" void
#define SEAMLINE_PARAM const
#define SEAMLINE_UNROLL
#define SEAMLINE_NO_UNROLL
// A static's address tells one shared variable from the others, as it does in CUDA: one per declaration and instantiation.
#define SEAMLINE_SHARED(type, name, count) \
  static char name##_tag;                  \
  type(&name)[count] = *(type(*)[count])device::shared(&name##_tag, sizeof(type[count]))

namespace device {

// Where a primitive is called from, in the generated source.
struct Place {
  const char* file;
  u32 line;
};
#define SEAMLINE_PLACE const char *file = __builtin_FILE(), u32 line = __builtin_LINE()

// What the simulator keeps for a thread, at the top of the thread's own stack. Only the fields that this file reads.
struct Thread {
  const struct Host* host;
  u32 thread, block, blocks, grid_row, cluster_rank;
};

// What an access does: the simulator knows which memory allows it. The values are seamline-sim's.
enum AccessKind : u32 { LOAD_CONST, LOAD, STORE, POLL, PUSH, ARM, CONTROL_LOAD, CONTROL_STORE };
enum MbarrierKind : u32 { MBARRIER_INIT, MBARRIER_EXPECT, MBARRIER_WAIT };
enum BarrierKind : u32 { BLOCK, CLUSTER_ARRIVE_RELAXED, CLUSTER_ARRIVE, CLUSTER_WAIT, GRID_WAIT, GRID_LAUNCH_DEPENDENTS };

struct Host {
  void (*access)(Thread*, AccessKind, const void*, u32 bytes, Place);
  void (*exchange_load)(Thread*, const void*, u32* words, Place);
  void (*exchange_store)(Thread*, AccessKind, void*, const u32* words, Place);
  u32 (*control_load)(Thread*, const u32*, Place);
  void (*barrier)(Thread*, BarrierKind, Place);
  u32 (*shuffle)(Thread*, u32 bits, u32 from, Place);
  void* (*shared)(Thread*, const void* tag, u64 bytes, Place);
  float (*load_shared)(Thread*, const float*, Place);
  void (*store_shared)(Thread*, float*, float, Place);
  void (*mbarrier)(Thread*, MbarrierKind, u64*, u32 operand, Place);
  void (*store_async)(Thread*, float*, u64*, u32 rank, float, Place);
  u64 (*clock_ns)(Thread*);
};

// The stack says who runs: a fiber's stack is an aligned piece of SEAMLINE_STACK_BYTES, whose last SEAMLINE_THREAD_BYTES are
// its Thread. Nothing global changes when fibers switch, and runs on several OS threads do not meet.
SEAMLINE_DEVICE Thread* self() {
  return (Thread*)(((u64)__builtin_frame_address(0) | (SEAMLINE_STACK_BYTES - 1)) + 1 - SEAMLINE_THREAD_BYTES);
}

SEAMLINE_DEVICE u32 thread() { return self()->thread; }
SEAMLINE_DEVICE u32 block() { return self()->block; }
SEAMLINE_DEVICE u32 blocks() { return self()->blocks; }
SEAMLINE_DEVICE u32 grid_row() { return self()->grid_row; }
SEAMLINE_DEVICE u32 cluster_rank() { return self()->cluster_rank; }

#define SEAMLINE_BARRIER(name, kind) \
  SEAMLINE_DEVICE void name(SEAMLINE_PLACE) { self()->host->barrier(self(), kind, Place{file, line}); }
SEAMLINE_BARRIER(grid_wait, GRID_WAIT)
SEAMLINE_BARRIER(grid_launch_dependents, GRID_LAUNCH_DEPENDENTS)
SEAMLINE_BARRIER(block_barrier, BLOCK)
SEAMLINE_BARRIER(cluster_arrive_relaxed, CLUSTER_ARRIVE_RELAXED)
SEAMLINE_BARRIER(cluster_arrive, CLUSTER_ARRIVE)
SEAMLINE_BARRIER(cluster_wait, CLUSTER_WAIT)

SEAMLINE_DEVICE float from_bits(u32 x) { float f; __builtin_memcpy(&f, &x, 4); return f; }
SEAMLINE_DEVICE u32 to_bits(float x) { u32 u; __builtin_memcpy(&u, &x, 4); return u; }

SEAMLINE_DEVICE u32 shuffle(u32 x, u32 from, SEAMLINE_PLACE) { return self()->host->shuffle(self(), x, from, Place{file, line}); }
SEAMLINE_DEVICE float shuffle_xor(float x, u32 mask, SEAMLINE_PLACE) {
  return from_bits(shuffle(to_bits(x), self()->thread % 32 ^ mask, file, line));
}
SEAMLINE_DEVICE void* shared(const void* tag, u64 bytes, SEAMLINE_PLACE) { return self()->host->shared(self(), tag, bytes, Place{file, line}); }
SEAMLINE_DEVICE float load_shared(const float* p, SEAMLINE_PLACE) { return self()->host->load_shared(self(), p, Place{file, line}); }
SEAMLINE_DEVICE void store_shared(float* p, float x, SEAMLINE_PLACE) { self()->host->store_shared(self(), p, x, Place{file, line}); }
SEAMLINE_DEVICE void mbarrier_init(u64* barrier, SEAMLINE_PLACE) { self()->host->mbarrier(self(), MBARRIER_INIT, barrier, 0, Place{file, line}); }
SEAMLINE_DEVICE void mbarrier_expect(u64* barrier, u32 bytes, SEAMLINE_PLACE) { self()->host->mbarrier(self(), MBARRIER_EXPECT, barrier, bytes, Place{file, line}); }
SEAMLINE_DEVICE void mbarrier_wait(u64* barrier, u32 parity, SEAMLINE_PLACE) { self()->host->mbarrier(self(), MBARRIER_WAIT, barrier, parity, Place{file, line}); }
SEAMLINE_DEVICE void store_async(float* p, u64* barrier, u32 rank, float x, SEAMLINE_PLACE) {
  self()->host->store_async(self(), p, barrier, rank, x, Place{file, line});
}

// An access that is not `on` touches nothing; such a load gives zero.
template <u32 BYTES> SEAMLINE_DEVICE void checked_load(AccessKind kind, void* to, const void* p, bool on, Place place) {
  __builtin_memset(to, 0, BYTES);
  if (on) {
    self()->host->access(self(), kind, p, BYTES, place);
    __builtin_memcpy(to, p, BYTES);
  }
}
template <u32 BYTES> SEAMLINE_DEVICE void checked_store(void* p, const void* from, bool on, Place place) {
  if (!on) return;
  self()->host->access(self(), STORE, p, BYTES, place);
  __builtin_memcpy(p, from, BYTES);
}
#define SEAMLINE_LOAD_WORDS(name, bytes, kind) \
  SEAMLINE_DEVICE void name(u32* w, const void* p, bool on, SEAMLINE_PLACE) { checked_load<bytes>(kind, w, p, on, Place{file, line}); }
#define SEAMLINE_LOAD_ONE(name, type, kind) \
  SEAMLINE_DEVICE type name(const void* p, bool on, SEAMLINE_PLACE) { type v; checked_load<sizeof(type)>(kind, &v, p, on, Place{file, line}); return v; }
#define SEAMLINE_LOAD(name, kind)         \
  SEAMLINE_LOAD_WORDS(name##16, 16, kind) \
  SEAMLINE_LOAD_WORDS(name##8, 8, kind)   \
  SEAMLINE_LOAD_ONE(name##4, u32, kind)   \
  SEAMLINE_LOAD_ONE(name##2, u16, kind)
SEAMLINE_LOAD(load_const, LOAD_CONST)
SEAMLINE_LOAD(load, LOAD)
SEAMLINE_DEVICE u32 load_index4(const void* p, SEAMLINE_PLACE) { return load_const4(p, true, file, line); }
SEAMLINE_DEVICE u16 load_index2(const void* p, SEAMLINE_PLACE) { return load_const2(p, true, file, line); }
#define SEAMLINE_STORE_WORDS(name, bytes) \
  SEAMLINE_DEVICE void name(void* p, const u32* w, bool on, SEAMLINE_PLACE) { checked_store<bytes>(p, w, on, Place{file, line}); }
#define SEAMLINE_STORE_ONE(name, type) \
  SEAMLINE_DEVICE void name(void* p, type v, bool on, SEAMLINE_PLACE) { checked_store<sizeof(type)>(p, &v, on, Place{file, line}); }
#define SEAMLINE_STORE(name)         \
  SEAMLINE_STORE_WORDS(name##16, 16) \
  SEAMLINE_STORE_WORDS(name##8, 8)   \
  SEAMLINE_STORE_ONE(name##4, u32)   \
  SEAMLINE_STORE_ONE(name##2, u16)   \
  SEAMLINE_DEVICE void name##1(void* p, u32 v, bool on, SEAMLINE_PLACE) { checked_store<1>(p, &v, on, Place{file, line}); }
SEAMLINE_STORE(store)
SEAMLINE_STORE(store_streaming)

SEAMLINE_DEVICE void exchange_load16(u32* w, const void* p, bool on, SEAMLINE_PLACE) {
  if (on) self()->host->exchange_load(self(), p, w, Place{file, line});
}
SEAMLINE_DEVICE void exchange_push16(void* p, const u32* w, SEAMLINE_PLACE) {
  self()->host->exchange_store(self(), PUSH, p, w, Place{file, line});
}
SEAMLINE_DEVICE void exchange_arm16(void* p, u32 word, bool on, SEAMLINE_PLACE) {
  const u32 w[4] = {word, word, word, word};
  if (on) self()->host->exchange_store(self(), ARM, p, w, Place{file, line});
}

// Atomic not for the fibers, which share one OS thread, but for the host, which reads the status while they run.
SEAMLINE_DEVICE u32 control_load(const u32* p, SEAMLINE_PLACE) { return self()->host->control_load(self(), p, Place{file, line}); }
SEAMLINE_DEVICE void control_store(u32* p, u32 v, SEAMLINE_PLACE) {
  self()->host->access(self(), CONTROL_STORE, p, 4, Place{file, line});
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
}
SEAMLINE_DEVICE void control_release(u32* p, u32 v, SEAMLINE_PLACE) {
  self()->host->access(self(), CONTROL_STORE, p, 4, Place{file, line});
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
}
SEAMLINE_DEVICE void control_add(u32* p, u32 v, SEAMLINE_PLACE) {
  self()->host->access(self(), CONTROL_STORE, p, 4, Place{file, line});
  __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
SEAMLINE_DEVICE u32 control_exchange_if_zero(u32* p, u32 v, SEAMLINE_PLACE) {
  self()->host->access(self(), CONTROL_STORE, p, 4, Place{file, line});
  u32 old = 0;
  __atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return old;
}
SEAMLINE_DEVICE u64 clock_ns() { return self()->host->clock_ns(self()); }

// Built with -ffp-contract=off: what is not written as fma is rounded twice.
SEAMLINE_DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
SEAMLINE_DEVICE u32 max(u32 a, u32 b) { return a > b ? a : b; }
SEAMLINE_DEVICE float divide(float a, float b) { return a / b; }
SEAMLINE_DEVICE float inverse_sqrt(float x) { return 1.0f / __builtin_sqrtf(x); }

SEAMLINE_DEVICE u32 to_bf16(float x) {
  u32 u = to_bits(x);
  return x != x ? 0x7FFFu : (u + 0x7FFFu + (u >> 16 & 1)) >> 16;
}
SEAMLINE_DEVICE u32 to_bf16x2(float lo, float hi) { return to_bf16(lo) | to_bf16(hi) << 16; }

SEAMLINE_DEVICE u32 to_f16(float x) {
  u32 u = to_bits(x), sign = u >> 16 & 0x8000u, magnitude = u & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return 0x7FFFu;
  if (magnitude >= 0x477FF000u) return sign | 0x7C00u;  // 65520 and more: half way to what would be 65536
  if (magnitude >= 0x38800000u) {                       // 2^-14, the least normal
    u32 rebiased = magnitude - 0x38000000u;
    return sign | (rebiased + 0xFFFu + (rebiased >> 13 & 1)) >> 13;
  }
  // A subnormal is a multiple of 2^-24, which the sum with 0.5 rounds to, because that is the last place of 0.5.
  return sign | (to_bits(from_bits(magnitude) + 0.5f) - 0x3F000000u);
}
SEAMLINE_DEVICE u32 to_f16x2(float lo, float hi) { return to_f16(lo) | to_f16(hi) << 16; }
SEAMLINE_DEVICE float from_f16(u16 x) {
  u32 sign = (u32)(x & 0x8000u) << 16, exponent = x >> 10 & 31, fraction = x & 0x3FFu;
  if (exponent == 0) return from_bits(to_bits((float)fraction * from_bits(0x33800000u)) | sign);  // times 2^-24
  return from_bits(sign | (exponent == 31 ? 0x7F800000u : (exponent + 112) << 23) | fraction << 13);
}

SEAMLINE_DEVICE u32 to_e4m3(float x) {
  u32 u = to_bits(x), sign = u >> 24 & 0x80u, magnitude = u & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return 0x7Fu;
  if (magnitude >= 0x43E00000u) return sign | 0x7Eu;  // 448 and more
  if (magnitude >= 0x3C800000u) {                     // 2^-6, the least normal
    u32 rebiased = magnitude - 0x3C000000u;
    return sign | (rebiased + 0x7FFFFu + (rebiased >> 20 & 1)) >> 20;
  }
  // A subnormal is a multiple of 2^-9, which the sum with 2^14 rounds to, because that is the last place of 2^14.
  return sign | (to_bits(from_bits(magnitude) + 16384.0f) - 0x46800000u);
}
SEAMLINE_DEVICE u32 to_e4m3x2(float lo, float hi) { return to_e4m3(lo) | to_e4m3(hi) << 8; }

// Calls a kernel whose one parameter is made of these slots.
template <class Parameter> SEAMLINE_DEVICE void call(void (*kernel)(Parameter), const u64* slots) { kernel(*(const Parameter*)slots); }

}  // namespace device
