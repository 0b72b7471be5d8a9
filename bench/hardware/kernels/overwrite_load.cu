// The buffer is cleared before each load, as for tiles that may be short (generic write, then bulk load over it); the
// words that are read back and stored must be the loaded ones.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256) overwrite_load(const uint32_t* in, uint32_t* out, int tiles) {
  extern __shared__ __align__(128) uint32_t buffer[];
  __shared__ uint64_t loaded;
  const uint32_t base = shared_address(buffer), barrier = shared_address(&loaded);
  if (threadIdx.x == 0) {
    barrier_init(barrier, 1);
  }
  __syncthreads();
  uint32_t parity = 0;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x, parity ^= 1) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
      store4(base + threadIdx.x * 128 + i * 16, make_uint4(0, 0, 0, 0));  // one row per lane
    }
    HAND_FENCE();
    __syncthreads();
    if (threadIdx.x == 0) {
      bulk_load(base, in + size_t{8192} * t, 32768, barrier);
    }
    barrier_wait(barrier, parity);
#pragma unroll
    for (int i = 0; i < 32; i++) {
      out[size_t{8192} * t + i * 256 + threadIdx.x] = buffer[i * 256 + threadIdx.x];
    }
    __syncthreads();
  }
}
