// Warp roles: eight warps fill a two-stage ring, a ninth stores full stages (generic write, mbarrier hand-off, bulk
// store by another warp). full: every producer thread arrives; empty: the consumer arrives when the stage was read.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(288) role_handoff(const uint4* in, uint4* out, int tiles) {
  extern __shared__ __align__(128) unsigned char ring[];
  __shared__ uint64_t barriers[4];
  const uint32_t base = shared_address(ring), full = shared_address(barriers), empty = full + 16;
  if (threadIdx.x == 0) {
    barrier_init(full, 256);
    barrier_init(full + 8, 256);
    barrier_init(empty, 1);
    barrier_init(empty + 8, 1);
  }
  __syncthreads();
  uint32_t stage = 0, parity = 0;
  if (threadIdx.x < 256) {
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
      const uint4* source = in + size_t{2048} * t + threadIdx.x;
      uint4 v[8];
#pragma unroll
      for (int i = 0; i < 8; i++) {
        v[i] = source[i * 256];
        v[i].x += t;
        v[i].w ^= 0x5A5A5A5Au;
      }
      barrier_wait(empty + stage * 8, parity ^ 1);
#pragma unroll
      for (int i = 0; i < 8; i++) {
        store4(base + stage * 32768 + threadIdx.x * 128 + i * 16, v[i]);  // one row per lane
      }
      HAND_FENCE();
      barrier_arrive(full + stage * 8);
      stage ^= 1;
      parity ^= stage == 0;
    }
  } else if (threadIdx.x == 256) {
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
      barrier_wait(full + stage * 8, parity);
      bulk_store(out + size_t{2048} * t, base + stage * 32768, 32768);
      ASM("cp.async.bulk.wait_group.read 0;");
      barrier_arrive(empty + stage * 8);
      stage ^= 1;
      parity ^= stage == 0;
    }
    ASM("cp.async.bulk.wait_group 0;");
  }
}
