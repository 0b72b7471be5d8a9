// RAW, generic -> async: tiled transpose through shared memory, result stored with cp.async.bulk.
// Variants: with and without -DFENCE (build.py).
// Without FENCE the kernel lacks fence.proxy.async between st.shared and the bulk store; on an H200 it writes stale bytes.
#include <cstdint>
extern "C" __global__ void __launch_bounds__(256) transpose_store(const float* in, float* out, int ntiles) {
  __shared__ __align__(128) float tile[64 * 64];
  const int tid = threadIdx.x;
  const uint32_t s = (uint32_t)__cvta_generic_to_shared(tile);
  for (int t = blockIdx.x; t < ntiles; t += gridDim.x) {
    const float* src = in + (size_t)t * 4096;
#pragma unroll
    for (int i = 0; i < 16; i++) {
      int r = i * 4 + tid / 64, c = tid % 64;
      tile[c * 64 + r] = src[r * 64 + c];
    }
#ifdef FENCE
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    if (tid == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16384;" ::"l"(out + (size_t)t * 4096), "r"(s) : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
  }
  if (tid == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
