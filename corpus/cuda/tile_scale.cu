// A tile arrives by bulk load, is scaled in place by ordinary accesses, and leaves by bulk store, in a loop (libcu++ cuda::ptx).
// Variants: with and without -DFENCE (build.py). FENCE = fence by every thread after its last access to the tile.
#include <cuda/ptx>
#include <cstdint>

namespace ptx = cuda::ptx;

extern "C" __global__ void __launch_bounds__(256) tile_scale(const float* in, float* out, float factor, int tiles) {
  __shared__ alignas(128) float tile[1024];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
  }
  __syncthreads();
  uint32_t parity = 0;
  for (int i = blockIdx.x; i < tiles; i += gridDim.x, parity ^= 1) {
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_shared, ptx::space_global, tile, in + i * 1024, sizeof(tile), &full);
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof(tile));
    }
    while (!ptx::mbarrier_try_wait_parity(&full, parity)) {
    }
    for (int j = threadIdx.x; j < 1024; j += 256) {
      tile[j] *= factor;
    }
#ifdef FENCE
    ptx::fence_proxy_async(ptx::space_shared);
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + i * 1024, tile, sizeof(tile));
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
    }
  }
}
