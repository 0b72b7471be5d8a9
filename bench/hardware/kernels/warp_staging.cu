// Per-warp staging slots: each warp fills its own 4 KB, synchronises with itself only, and one of its lanes stores
// them (generic write, bar.warp.sync, bulk store).
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256) warp_staging(const uint4* in, uint4* out, int tiles) {
  __shared__ alignas(128) unsigned char slots[8 * 4096];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t slot = shared_address(slots) + warp * 4096;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
    const uint4* source = in + size_t{2048} * t + warp * 256 + lane;
    uint4 v[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
      v[i] = source[i * 32];
      v[i].y -= t;
      v[i].z ^= 0xA5A5A5A5u;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
      store4(slot + lane * 128 + i * 16, v[i]);  // one row per lane
    }
    HAND_FENCE();
    __syncwarp();
    if (lane == 0) {
      bulk_store(out + size_t{2048} * t + warp * 256, slot, 4096);
      ASM("cp.async.bulk.wait_group.read 0;");
    }
    __syncwarp();
  }
  if (lane == 0) {
    ASM("cp.async.bulk.wait_group 0;");
  }
}
