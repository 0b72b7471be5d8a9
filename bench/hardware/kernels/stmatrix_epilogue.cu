// Epilogue: every warp puts its fragments into shared memory with stmatrix, one thread sends the tile off (generic
// write, then bulk store). A tile is 256 rows of 128 bytes; a warp owns 32 rows.
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256) stmatrix_epilogue(const uint32_t* in, uint32_t* out, int tiles) {
  __shared__ alignas(128) uint32_t tile[8192];
  const uint32_t base = shared_address(tile);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t row = base + threadIdx.x * 128;  // the row whose address this lane supplies
  const int word = (warp * 32 + lane / 4) * 32 + lane % 4;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
    const uint32_t* source = in + size_t{8192} * t + word;
    uint32_t v[32];
#pragma unroll
    for (int i = 0; i < 32; i++) {
      v[i] = source[(i % 4) * 256 + (i / 4) * 4] * 0x9E3779B1u + t;
    }
#pragma unroll
    for (int c = 0; c < 8; c++) {
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row + c * 16), "r"(v[4 * c]),
                   "r"(v[4 * c + 1]), "r"(v[4 * c + 2]), "r"(v[4 * c + 3])
                   : "memory");
    }
    HAND_FENCE();
    __syncthreads();
    if (threadIdx.x == 0) {
      bulk_store(out + size_t{8192} * t, base, 32768);
      ASM("cp.async.bulk.wait_group.read 0;");
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    ASM("cp.async.bulk.wait_group 0;");
  }
}
