// Running sums: every thread adds its words into a shared tile with red.shared, one thread stores the tile after each
// round (generic read-modify-write, then bulk store). out[t] is the sum of this CTA's tiles up to t.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256) red_bulk_store(const uint32_t* in, uint32_t* out, int tiles) {
  __shared__ alignas(128) uint32_t tile[4096];
  const uint32_t base = shared_address(tile);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t mine = base + (lane * 128 + warp * 16) * 4;  // all lanes of a warp hit one bank
  for (int i = threadIdx.x; i < 4096; i += 256) {
    tile[i] = 0;
  }
  __syncthreads();
  for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
    const uint32_t* source = in + size_t{4096} * t + threadIdx.x;
    uint32_t v[16];
#pragma unroll
    for (int i = 0; i < 16; i++) {
      v[i] = source[i * 256];
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
      asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(mine + i * 4), "r"(v[i]) : "memory");
    }
    HAND_FENCE();
    __syncthreads();
    if (threadIdx.x == 0) {
      bulk_store(out + size_t{4096} * t, base, 16384);
      ASM("cp.async.bulk.wait_group.read 0;");
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    ASM("cp.async.bulk.wait_group 0;");
  }
}
