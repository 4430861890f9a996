// FlashInfer's two ways through the seam, behind seamline_peer.h: pattern 7 (kMoEFinalizeARResidualRMSNorm), and a finalize kernel
// of ours followed by pattern 1 (kARResidualRMSNorm), one-shot.
//
// Build, with the headers of the flashinfer-python wheel (0.7.4 was measured):
//   nvcc -std=c++17 -O3 -gencode=arch=compute_90a,code=sm_90a --expt-relaxed-constexpr -shared -Xcompiler -fPIC \
//     -I flashinfer/data/include -I flashinfer/data/spdlog/include -o libflashinfer_peer.so flashinfer.cu
#include <cstring>
#include <vector>
#include "flashinfer/comm/trtllm_allreduce_fusion.cuh"
#include "flashinfer/comm/trtllm_moe_allreduce_fusion.cuh"
#include "seamline_peer.h"

using bf16 = __nv_bfloat16;
namespace moe = flashinfer::trtllm_moe_allreduce_fusion;
namespace ar = flashinfer::trtllm_allreduce_fusion;

namespace {

constexpr int kBarrierBytes = 256 * 8 * 4 * 4;

// The fastest plain finalize we know: one thread per 8 channels, all loads first, f32 accumulation, one rounding.
template <int K> __global__ void finalize(const bf16* rows, const int* map, const float* weights, const bf16* shared, bf16* out, int hidden) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
  const int token = blockIdx.y, lane = blockIdx.x * blockDim.x + threadIdx.x;
  if (lane >= hidden / 8) return;
  int index[K];
  float weight[K];
  uint4 row[K];
#pragma unroll
  for (int k = 0; k < K; k++) { index[k] = map[token * K + k]; weight[k] = weights[token * K + k]; }
#pragma unroll
  for (int k = 0; k < K; k++)
    row[k] = index[k] >= 0 ? *reinterpret_cast<const uint4*>(rows + (long)index[k] * hidden + lane * 8) : uint4{0, 0, 0, 0};
  const uint4 s = *reinterpret_cast<const uint4*>(shared + (long)token * hidden + lane * 8);
  float acc[8] = {};
#pragma unroll
  for (int k = 0; k < K; k++)
#pragma unroll
    for (int j = 0; j < 8; j++) acc[j] = fmaf(__bfloat162float(reinterpret_cast<const bf16*>(&row[k])[j]), weight[k], acc[j]);
  uint4 o;
#pragma unroll
  for (int j = 0; j < 8; j++) reinterpret_cast<bf16*>(&o)[j] = __float2bfloat16(acc[j] + __bfloat162float(reinterpret_cast<const bf16*>(&s)[j]));
  *reinterpret_cast<uint4*>(out + (long)token * hidden + lane * 8) = o;
}

struct State {
  seamline_seam seam;
  bool fused;
  std::vector<void*> owned;
  std::vector<void**> workspace;
  std::vector<bf16*> finalized;

  void* take(size_t bytes, int fill) {
    void* p = nullptr;
    if (cudaMalloc(&p, bytes) != cudaSuccess) return nullptr;
    cudaMemset(p, fill, bytes);
    owned.push_back(p);
    return p;
  }
  // Pointers of all ranks' two-shot, barrier and Lamport buffers, and this rank's flags; Lamport buffers begin as -0.0.
  bool make_workspace() {
    const int n = seam.ranks;
    const long bytes = (long)seam.tokens * seam.hidden * 2 * n;
    std::vector<void*> comm(n), barrier(n), lamport(n);
    std::vector<unsigned> negative_zero(bytes * 3 / 4, 0x80008000u);
    for (int r = 0; r < n; r++) {
      comm[r] = take(bytes * 2, 0);
      barrier[r] = take(kBarrierBytes, 0);
      lamport[r] = take(bytes * 3, 0);
      finalized.push_back((bf16*)take((long)seam.tokens * seam.hidden * 2, 0));
      if (!comm[r] || !barrier[r] || !lamport[r] || !finalized[r]) return false;
      cudaMemcpy(lamport[r], negative_zero.data(), bytes * 3, cudaMemcpyHostToDevice);
    }
    for (int r = 0; r < n; r++) {
      const int flags[5] = {0, 0, 0, (int)bytes, 0};
      void* own = take(64, 0);
      cudaMemcpy(own, flags, sizeof flags, cudaMemcpyHostToDevice);
      std::vector<void*> table(3 * n + 1);
      for (int q = 0; q < n; q++) { table[q] = comm[q]; table[n + q] = barrier[q]; table[2 * n + q] = lamport[q]; }
      table[3 * n] = own;
      void** device = (void**)take(table.size() * sizeof(void*), 0);
      cudaMemcpy(device, table.data(), table.size() * sizeof(void*), cudaMemcpyHostToDevice);
      workspace.push_back(device);
    }
    return cudaDeviceSynchronize() == cudaSuccess;
  }
  ~State() { for (void* p : owned) cudaFree(p); }
};

template <class Kernel> int resident_clusters(Kernel kernel, int ctas, int threads) {
  cudaLaunchConfig_t config{};
  config.gridDim = ctas;
  config.blockDim = threads;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = ctas;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  cudaOccupancyMaxActiveClusters(&clusters, kernel, &config);
  return clusters;
}

template <int N> bool fits(const seamline_seam& s) {
  int ctas = 8, warps = (s.hidden / 8 + 31) / 32, sms = 0;
  while (warps % ctas) ctas /= 2;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  const int clusters = (s.tokens * ctas < sms ? s.tokens * ctas : sms) / ctas;
  const int most = resident_clusters(moe::moefinalize_allreduce_fusion_kernel_oneshot_lamport<bf16, N, true, true, false, bf16>, ctas, warps / ctas * 32);
  return clusters * N * (s.pdl ? 2 : 1) <= most;
}

int launch_fused(State& st, int r, cudaStream_t stream) {
  const seamline_seam& s = st.seam;
  moe::MoeFinalizeAllReduceFusionParams<bf16> p;
  p.nranks = s.ranks; p.rank = r; p.size = s.tokens * s.hidden; p.hidden_dim = s.hidden; p.workspace = st.workspace[r];
  p.allreduce_in = (void*)s.gemm2_out[r]; p.residual_in = (void*)s.residual_in[r]; p.residual_out = s.residual_out[r]; p.norm_out = s.norm_out[r];
  p.quant_out = nullptr; p.scale_out = nullptr; p.rms_gamma = (void*)s.gamma[r]; p.rms_eps = s.eps; p.stream = stream; p.top_k = s.top_k;
  p.expert_scale_factor = (void*)s.weights_bf16[r]; p.shared_expert_output = (void*)s.shared[r]; p.expanded_idx_to_permuted_idx = (int*)s.row_map[r];
  p.allreduce_out = nullptr; p.moe_allreduce_out = nullptr; p.scale_factor = 1.f;
  return moe::moefinalize_allreduce_fusion_op(p, s.pdl != 0);
}

template <int N> int launch_pattern_1(const ar::AllReduceFusionParams<bf16>& p, bool pdl) {
  return ar::allreduce_fusion_kernel_launcher<ar::AllReduceFusionPattern::kARResidualRMSNorm, bf16, N, true>(p, pdl);
}

int launch_pair(State& st, int r, cudaStream_t stream) {
  const seamline_seam& s = st.seam;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3((s.hidden / 8 + 127) / 128, s.tokens);
  config.blockDim = 128;
  config.stream = stream;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = s.pdl;
  config.attrs = &attribute;
  config.numAttrs = 1;
  if (cudaError_t e = cudaLaunchKernelEx(&config, finalize<8>, (const bf16*)s.gemm2_out[r], s.row_map[r], s.weights[r], (const bf16*)s.shared[r], st.finalized[r], s.hidden)) return e;
  ar::AllReduceFusionParams<bf16> p;
  std::memset(&p, 0, sizeof p);
  p.nranks = s.ranks; p.rank = r; p.size = s.tokens * s.hidden; p.hidden_dim = s.hidden; p.workspace = st.workspace[r];
  p.allreduce_in = st.finalized[r]; p.residual_in = (void*)s.residual_in[r]; p.residual_out = s.residual_out[r]; p.norm_out = s.norm_out[r];
  p.rms_gamma = (void*)s.gamma[r]; p.rms_eps = s.eps; p.stream = stream; p.use_oneshot = true;
  p.pattern = ar::AllReduceFusionPattern::kARResidualRMSNorm; p.trigger_completion_at_end = false;
  switch (s.ranks) {
    case 2: return launch_pattern_1<2>(p, s.pdl);
    case 4: return launch_pattern_1<4>(p, s.pdl);
    default: return launch_pattern_1<8>(p, s.pdl);
  }
}

}  // namespace

int seamline_peer_count(void) { return 2; }
const char* seamline_peer_name(int way) { return way == 0 ? "FlashInfer fused (pattern 7)" : "finalize + FlashInfer AR+norm"; }

void* seamline_peer_open(int way, const seamline_seam* seam) {
  if (seam->top_k != 8 || seam->hidden % 256 != 0) return nullptr;
  const bool fit = seam->ranks == 2 ? fits<2>(*seam) : seam->ranks == 4 ? fits<4>(*seam) : seam->ranks == 8 && fits<8>(*seam);
  if (!fit) return nullptr;
  State* state = new State{*seam, way == 0};
  if (state->make_workspace()) return state;
  delete state;
  return nullptr;
}
int seamline_peer_launch(void* state, int rank, void* stream) {
  State& st = *(State*)state;
  return st.fused ? launch_fused(st, rank, (cudaStream_t)stream) : launch_pair(st, rank, (cudaStream_t)stream);
}
void seamline_peer_close(void* state) { delete (State*)state; }
