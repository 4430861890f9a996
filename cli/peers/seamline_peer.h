// What `seamline bench --peer LIBRARY.so` asks of another implementation of the MoE seam: finalize + shared expert + all-reduce +
// residual + RMSNorm. Both run in one process, on the same buffers, in the same CUDA graph harness.
#pragma once
#ifdef __cplusplus
extern "C" {
#endif

#define SEAMLINE_PEER_RANKS 8

// One case. Pointers are device memory, one per rank; row-major, 16-byte aligned.
struct seamline_seam {
  int ranks, tokens, hidden, top_k;
  long rows;                                       // P, of gemm2_out
  const void* gemm2_out[SEAMLINE_PEER_RANKS];      // [P, H] bf16
  const int* row_map[SEAMLINE_PEER_RANKS];         // [T, K] i32
  const float* weights[SEAMLINE_PEER_RANKS];       // [T, K] f32
  const void* weights_bf16[SEAMLINE_PEER_RANKS];   // [T, K] bf16, the same values rounded
  const void* shared[SEAMLINE_PEER_RANKS];         // [T, H] bf16
  const void* residual_in[SEAMLINE_PEER_RANKS];    // [T, H] bf16
  const void* gamma[SEAMLINE_PEER_RANKS];          // [H] bf16
  void* residual_out[SEAMLINE_PEER_RANKS];         // [T, H] bf16
  void* norm_out[SEAMLINE_PEER_RANKS];             // [T, H] bf16
  float eps;
  int pdl;  // launch with programmatic stream serialization
};

// The ways this library has to run the seam, and what a table calls each.
int seamline_peer_count(void);
const char* seamline_peer_name(int way);
// Makes what a way needs for a case; null if it cannot run it, for instance because its CTAs would not all be resident with
// every rank on one GPU (and its PDL successors beside them).
void* seamline_peer_open(int way, const struct seamline_seam* seam);
// Queues one rank's launch on its stream (a CUstream); 0, or a CUDA error. Called under stream capture too.
int seamline_peer_launch(void* state, int rank, void* stream);
void seamline_peer_close(void* state);

#ifdef __cplusplus
}
#endif
