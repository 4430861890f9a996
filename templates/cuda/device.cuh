// The device layer: everything that is PTX or a CUDA builtin, one line each. No CUDA header is included, because
// cooperative_groups.h alone costs NVRTC over 500 ms. seamline-sim has a twin of this file with the same names, which
// runs them on a CPU; whatever a schedule needs from the machine goes through here.

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

#define SEAMLINE_DEVICE static __device__ __forceinline__
#define SEAMLINE_CONSTEXPR static __device__ constexpr
#define SEAMLINE_KERNEL(threads, blocks_per_sm) extern "C" __global__ void __launch_bounds__(threads, blocks_per_sm)
#define SEAMLINE_PARAM const __grid_constant__
#define SEAMLINE_SHARED(type, name, count) __shared__ __align__(16) type name[count]
#define SEAMLINE_UNROLL _Pragma("unroll")
#define SEAMLINE_NO_UNROLL _Pragma("unroll 1")

namespace device {

// Where this thread is.
SEAMLINE_DEVICE u32 thread() { return threadIdx.x; }
SEAMLINE_DEVICE u32 block() { return blockIdx.x; }
SEAMLINE_DEVICE u32 blocks() { return gridDim.x; }
SEAMLINE_DEVICE u32 grid_row() { return blockIdx.y; }
SEAMLINE_DEVICE u32 cluster_rank() {
  u32 r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

// Programmatic dependent launch. After the wait, all that the preceding kernels wrote is visible.
SEAMLINE_DEVICE void grid_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
SEAMLINE_DEVICE void grid_launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Barriers and lanes.
SEAMLINE_DEVICE void block_barrier() { asm volatile("barrier.sync.aligned 0;" ::: "memory"); }
SEAMLINE_DEVICE void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
SEAMLINE_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
SEAMLINE_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
SEAMLINE_DEVICE float shuffle_xor(float x, u32 mask) {
  float r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(r) : "f"(x), "r"(mask));
  return r;
}
// What lane `from` of the warp passes.
SEAMLINE_DEVICE u32 shuffle(u32 x, u32 from) {
  u32 r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(r) : "r"(x), "r"(from));
  return r;
}
// Shared memory of this block.
SEAMLINE_DEVICE float load_shared(const float* p) { return *p; }
SEAMLINE_DEVICE void store_shared(float* p, float x) { *p = x; }
SEAMLINE_DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// An mbarrier counts phases. A phase ends when a thread of its block has arrived and the bytes that this one expects have
// come; which thread, or block, sent them is of no account. Unlike a barrier of the cluster with release it waits for
// nothing else that the senders have stored.
//
// Made by one thread. Whoever is behind a barrier of the cluster that this thread has arrived at since, even relaxed, may
// use it.
SEAMLINE_DEVICE void mbarrier_init(u64* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(
                   shared_address(barrier))
               : "memory");
}
// The arrival of this phase. Bytes may come before it.
SEAMLINE_DEVICE void mbarrier_expect(u64* barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
// Waits for the end of the last phase with this parity: that of phase 0 is 0. What its bytes are is visible then.
SEAMLINE_DEVICE void mbarrier_wait(u64* barrier, u32 parity) {
  asm volatile(
      "{.reg .pred done; wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1; @!done bra wait;}" ::
          "r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
// Stores to `p` in the block `rank` of the cluster, whose `barrier` counts the 4 bytes when they are there. Both are shared
// variables, named as those of this block.
SEAMLINE_DEVICE void store_async(float* p, u64* barrier, u32 rank, float x) {
  u32 to, at;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(p)), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(shared_address(barrier)), "r"(rank));
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to),
               "r"(__float_as_uint(x)), "r"(at)
               : "memory");
}

// Global memory. An access moves 16 or 8 bytes from or to the words at `w`, or 4, 2 or 1 bytes. Each is predicated: one
// that is off touches nothing and reads zero, without a branch. `const` loads read, once, what this kernel does not
// write; the others may follow a store of this thread. None is `.nc`: PTX wants what that reads unwritten for the whole
// kernel, and the kernel before writes a kernel's inputs while it is resident already, up to the wait. So an `.nc` load
// may lawfully be moved over the wait, either way.
#define SEAMLINE_LOAD(name, op)                                                                      \
  SEAMLINE_DEVICE void name##16(u32 * w, const void* p, bool on) {                                   \
    w[0] = w[1] = w[2] = w[3] = 0;                                                                   \
    asm volatile("{.reg .pred on; setp.ne.u32 on, %5, 0; @on " op ".v4.u32 {%0, %1, %2, %3}, [%4];}" \
                 : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3])                                    \
                 : "l"(p), "r"((u32)on)                                                              \
                 : "memory");                                                                        \
  }                                                                                                  \
  SEAMLINE_DEVICE void name##8(u32 * w, const void* p, bool on) {                                    \
    w[0] = w[1] = 0;                                                                                 \
    asm volatile("{.reg .pred on; setp.ne.u32 on, %3, 0; @on " op ".v2.u32 {%0, %1}, [%2];}"         \
                 : "+r"(w[0]), "+r"(w[1])                                                            \
                 : "l"(p), "r"((u32)on)                                                              \
                 : "memory");                                                                        \
  }                                                                                                  \
  SEAMLINE_DEVICE u32 name##4(const void* p, bool on) {                                              \
    u32 v = 0;                                                                                       \
    asm volatile("{.reg .pred on; setp.ne.u32 on, %2, 0; @on " op ".u32 %0, [%1];}"                  \
                 : "+r"(v)                                                                           \
                 : "l"(p), "r"((u32)on)                                                              \
                 : "memory");                                                                        \
    return v;                                                                                        \
  }                                                                                                  \
  SEAMLINE_DEVICE u16 name##2(const void* p, bool on) {                                              \
    u16 v = 0;                                                                                       \
    asm volatile("{.reg .pred on; setp.ne.u32 on, %2, 0; @on " op ".u16 %0, [%1];}"                  \
                 : "+h"(v)                                                                           \
                 : "l"(p), "r"((u32)on)                                                              \
                 : "memory");                                                                        \
    return v;                                                                                        \
  }
SEAMLINE_LOAD(load_const, "ld.global.L1::no_allocate")
SEAMLINE_LOAD(load, "ld.global")
// An index, or a value per token or expert: many threads read it.
SEAMLINE_DEVICE u32 load_index4(const void* p) {
  u32 v;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
SEAMLINE_DEVICE u16 load_index2(const void* p) {
  u16 v;
  asm volatile("ld.global.u16 %0, [%1];" : "=h"(v) : "l"(p) : "memory");
  return v;
}

#define SEAMLINE_STORE(name, op)                                                                                   \
  SEAMLINE_DEVICE void name##16(void* p, const u32* w, bool on) {                                                  \
    asm volatile("{.reg .pred on; setp.ne.u32 on, %5, 0; @on " op ".v4.u32 [%0], {%1, %2, %3, %4};}" ::"l"(p),     \
                 "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"((u32)on)                                          \
                 : "memory");                                                                                      \
  }                                                                                                                \
  SEAMLINE_DEVICE void name##8(void* p, const u32* w, bool on) {                                                   \
    asm volatile("{.reg .pred on; setp.ne.u32 on, %3, 0; @on " op ".v2.u32 [%0], {%1, %2};}" ::"l"(p), "r"(w[0]),  \
                 "r"(w[1]), "r"((u32)on)                                                                           \
                 : "memory");                                                                                      \
  }                                                                                                                \
  SEAMLINE_DEVICE void name##4(void* p, u32 v, bool on) {                                                          \
    asm volatile("{.reg .pred on; setp.ne.u32 on, %2, 0; @on " op ".u32 [%0], %1;}" ::"l"(p), "r"(v), "r"((u32)on) \
                 : "memory");                                                                                      \
  }                                                                                                                \
  SEAMLINE_DEVICE void name##2(void* p, u16 v, bool on) {                                                          \
    asm volatile("{.reg .pred on; setp.ne.u32 on, %2, 0; @on " op ".u16 [%0], %1;}" ::"l"(p), "h"(v), "r"((u32)on) \
                 : "memory");                                                                                      \
  }                                                                                                                \
  SEAMLINE_DEVICE void name##1(void* p, u32 v, bool on) {                                                          \
    asm volatile("{.reg .pred on; setp.ne.u32 on, %2, 0; @on " op ".u8 [%0], %1;}" ::"l"(p), "r"(v), "r"((u32)on)  \
                 : "memory");                                                                                      \
  }
SEAMLINE_STORE(store, "st.global")
SEAMLINE_STORE(store_streaming, "st.global.cs")

// Exchange memory: shared with other GPUs, strong at system scope. Each 32-bit word is single-copy atomic; a vector is
// four words that may arrive apart.
// A poll of this rank's own memory, into four words; one that is off leaves them as they are.
SEAMLINE_DEVICE void exchange_load16(u32* w, const void* p, bool on) {
  asm volatile("{.reg .pred on; setp.ne.u32 on, %5, 0; @on ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];}"
               : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3])
               : "l"(p), "r"((u32)on)
               : "memory");
}
// A store to the memory of a rank, this one's or another's: the data it sends.
SEAMLINE_DEVICE void exchange_push16(void* p, const u32* w) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(w[0]), "r"(w[1]), "r"(w[2]),
               "r"(w[3])
               : "memory");
}
// A store of four words `word` to this rank's own memory, that empties a slot.
SEAMLINE_DEVICE void exchange_arm16(void* p, u32 word, bool on) {
  asm volatile(
      "{.reg .pred on; setp.ne.u32 on, %2, 0; @on st.relaxed.sys.global.v4.u32 [%0], {%1, %1, %1, %1};}" ::"l"(p),
      "r"(word), "r"((u32)on)
      : "memory");
}

// Control words: epochs, the fault word, counters. Strong at system scope.
SEAMLINE_DEVICE u32 control_load(const u32* p) {
  u32 v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
SEAMLINE_DEVICE void control_store(u32* p, u32 v) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
SEAMLINE_DEVICE void control_release(u32* p, u32 v) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
SEAMLINE_DEVICE void control_add(u32* p, u32 v) {
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
SEAMLINE_DEVICE u32 control_exchange_if_zero(u32* p, u32 v) {
  u32 old;
  asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], 0, %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
  return old;
}
// Nanoseconds on a clock that all blocks share.
SEAMLINE_DEVICE u64 clock_ns() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

// Arithmetic that C++ does not spell: every result is rounded once, to nearest even; subnormals are kept.
SEAMLINE_DEVICE u32 max(u32 a, u32 b) { return a > b ? a : b; }
SEAMLINE_DEVICE float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
SEAMLINE_DEVICE float from_bits(u32 x) { return __uint_as_float(x); }
SEAMLINE_DEVICE u32 to_bits(float x) { return __float_as_uint(x); }
// a / b, IEEE, for a constant whole b up to 65536 and any a but -0.0, which no row sum is. The remainder of an
// approximate quotient corrects it (Markstein, IBM J. Res. Dev. 34, 1990): a / b lies at least 2^-17 of a last place
// from the middle between two floats, and the correction errs by less than 2^-23 of one. Where the remainder could be
// subnormal f64 has room for it, and its quotient may be rounded again: it does not lie close to the middle between two
// floats without being it. (The built-in division has a call for those, whose compilation takes as long as a tenth of a
// kernel's.)
SEAMLINE_DEVICE float divide(float a, float b) {
  const float r = 1.0f / b, q = a * r;
  const u32 magnitude = to_bits(q) & 0x7FFFFFFFu;
  if (magnitude < 0x0D800000u) {  // 2^-100
    const double wide = 1.0 / (double)b, p = (double)a * wide;
    return (float)__fma_rn(__fma_rn(-p, (double)b, (double)a), wide, p);
  }
  return magnitude < 0x7F800000u ? fma(fma(-q, b, a), r, q) : q;
}
// 1 / sqrt(x), root and quotient IEEE: each is approximated and corrected with its remainder, as the built-in ones are,
// without their calls for operands out of range. A small x is scaled, and the root is always in range.
SEAMLINE_DEVICE float inverse_sqrt(float x) {
  const bool small = x < 0x1p-100f;
  const float scaled = small ? x * 0x1p64f : x;
  float y, z;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(scaled));
  const float s = scaled * y, near = fma(fma(-s, s, scaled), 0.5f * y, s), root = small ? near * 0x1p-32f : near;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(z) : "f"(root));
  // For zeros, infinity, NaN and what has no root the approximation is right.
  return to_bits(x) - 1 < 0x7F7FFFFFu ? fma(fma(-root, z, 1.0f), z, z) : y;
}

// Conversions: to nearest even, overflow to infinity, NaN to 0x7FFF. The first element is the low half.
SEAMLINE_DEVICE u32 to_bf16x2(float lo, float hi) {
  u32 d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo));
  return d;
}
SEAMLINE_DEVICE u32 to_f16x2(float lo, float hi) {
  u32 d;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo));
  return d;
}
// To nearest even, to at most 448 in magnitude, NaN to 0x7F.
SEAMLINE_DEVICE u32 to_e4m3x2(float lo, float hi) {
  u16 d;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(d) : "f"(hi), "f"(lo));
  return d;
}
SEAMLINE_DEVICE float from_f16(u16 x) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x));
  return f;
}

}  // namespace device
