// RAW through global memory: the CTA writes a scratch tile with st.global and reads it back with cp.async.bulk in the same kernel.
// Variants: with and without -DFENCE (build.py); FENCE = fence.proxy.async.global by every writer.
#include <cstdint>
extern "C" __global__ void __launch_bounds__(256) global_roundtrip(uint32_t* scratch, uint32_t* log, uint32_t* bad, int iters) {
  __shared__ __align__(128) uint32_t buf[1024];
  __shared__ __align__(8) uint64_t bar;
  const int tid = threadIdx.x;
  const uint32_t s = (uint32_t)__cvta_generic_to_shared(buf), mb = (uint32_t)__cvta_generic_to_shared(&bar);
  if (tid == 0) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(mb) : "memory"); asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
  __syncthreads();
  uint32_t* g = scratch + blockIdx.x * 1024;
  uint32_t* lg = log + ((size_t)blockIdx.x * 256 + tid) * 8 * 32;
  uint32_t nbad = 0;
  for (int it = 0; it < iters; it++) {
    for (int i = 0; i < 8; i++) ((volatile uint32_t*)lg)[i * 32] = it;          // other, uncoalesced traffic
    uint32_t v = it * 0x9E3779B1u;
    *(uint4*)(g + tid * 4) = make_uint4(v ^ tid, v + tid, v - tid, v);
#ifdef FENCE
    asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
    __syncthreads();
    if (tid == 0) {
      asm volatile("{.reg .b64 st; mbarrier.arrive.expect_tx.shared::cta.b64 st, [%0], 4096;}" ::"r"(mb) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];" ::"r"(s), "l"(g), "r"(mb) : "memory");
    }
    uint32_t ok = 0;
    while (!ok) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0,1,0,p;}" : "=r"(ok) : "r"(mb), "r"(it & 1) : "memory");
    uint4 q;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(q.x), "=r"(q.y), "=r"(q.z), "=r"(q.w) : "r"(s + tid * 16) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");   // orders the reads of buf before the next bulk load
    nbad += (q.x != (v ^ tid)) + (q.y != v + tid) + (q.z != v - tid) + (q.w != v);
    __syncthreads();
  }
  atomicAdd(bad, nbad);
}
