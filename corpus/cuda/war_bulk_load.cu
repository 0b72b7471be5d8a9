// WAR, generic read -> async write: tiles arrive by cp.async.bulk, threads copy them to registers, release the buffer with bar.sync
// and only then use the values. Without FENCE, ld.shared still in flight can return bytes of the NEXT tile.
// Variants: with and without -DFENCE (build.py).
#include <cstdint>
extern "C" __global__ void __launch_bounds__(256) war_load(const uint32_t* in, uint32_t* out, int ntiles) {
  extern __shared__ __align__(128) uint32_t buf[];   // 256 threads * 32 words = 32 KB
  __shared__ __align__(8) uint64_t bar;
  const int tid = threadIdx.x;
  const uint32_t s = (uint32_t)__cvta_generic_to_shared(buf), mb = (uint32_t)__cvta_generic_to_shared(&bar);
  if (tid == 0) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(mb) : "memory"); asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
  __syncthreads();
  auto load = [&](int t) {
    asm volatile("{.reg .b64 st; mbarrier.arrive.expect_tx.shared::cta.b64 st, [%0], 32768;}" ::"r"(mb) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 32768, [%2];" ::"r"(s), "l"(in + (size_t)t * 8192), "r"(mb) : "memory");
  };
  if (tid == 0 && blockIdx.x < ntiles) load(blockIdx.x);
  uint32_t par = 0;
  for (int t = blockIdx.x; t < ntiles; t += gridDim.x, par ^= 1) {
    uint32_t ok = 0;
    while (!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0,1,0,p;}" : "=r"(ok) : "r"(mb), "r"(par) : "memory");
    uint32_t v[32];
#pragma unroll
    for (int i = 0; i < 32; i++) asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v[i]) : "r"(s + (tid * 32 + i) * 4) : "memory");  // row per thread: 32-way conflicts
#ifdef FENCE
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();                                   // buffer released
    if (tid == 0 && t + gridDim.x < ntiles) load(t + gridDim.x);
    uint32_t x = 0;
#pragma unroll
    for (int i = 0; i < 32; i++) x = x * 31u + v[i];
    out[(size_t)t * 256 + tid] = x;
  }
}
