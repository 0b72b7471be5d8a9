// RAW, generic -> async: C[t] = A[t] (64x64 fp16) * B (64x64 fp16), both staged in shared memory with st.shared, read by wgmma.
// Variants: with and without -DFENCE (build.py).
#include <cstdint>
__device__ __forceinline__ uint64_t desc(uint32_t a) { return (uint64_t)((a & 0x3ffff) >> 4) | ((uint64_t)(1024 >> 4) << 16) | ((uint64_t)(128 >> 4) << 32); }
extern "C" __global__ void __launch_bounds__(128) wgmma_staged(const uint4* A, const uint4* Bt, float* C, int ntiles) {
  __shared__ __align__(128) char sA[8192];
  __shared__ __align__(128) char sB[8192];
  const int tid = threadIdx.x;
  // no-swizzle K-major core matrices: element (row, k) of an operand lives at ((k/8)*8 + row/8)*128 + (row%8)*16 + (k%8)*2
#pragma unroll
  for (int i = 0; i < 4; i++) { int c = i * 128 + tid, row = c / 8, k8 = c % 8; *(uint4*)(sB + (k8 * 8 + row / 8) * 128 + (row % 8) * 16) = Bt[c]; }
  const uint64_t dA = desc((uint32_t)__cvta_generic_to_shared(sA)), dB = desc((uint32_t)__cvta_generic_to_shared(sB));
  for (int t = blockIdx.x; t < ntiles; t += gridDim.x) {
#pragma unroll
    for (int i = 0; i < 4; i++) { int c = i * 128 + tid, row = c / 8, k8 = c % 8; *(uint4*)(sA + (k8 * 8 + row / 8) * 128 + (row % 8) * 16) = A[(size_t)t * 512 + c]; }
#ifdef FENCE
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    float d[32];
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < 4; k++)
      asm volatile("{.reg .pred p; setp.ne.b32 p,%34,0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31},%32,%33,p,1,1,0,0;}"
        : "+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]),"+f"(d[4]),"+f"(d[5]),"+f"(d[6]),"+f"(d[7]),"+f"(d[8]),"+f"(d[9]),"+f"(d[10]),"+f"(d[11]),"+f"(d[12]),"+f"(d[13]),"+f"(d[14]),"+f"(d[15]),"+f"(d[16]),"+f"(d[17]),"+f"(d[18]),"+f"(d[19]),"+f"(d[20]),"+f"(d[21]),"+f"(d[22]),"+f"(d[23]),"+f"(d[24]),"+f"(d[25]),"+f"(d[26]),"+f"(d[27]),"+f"(d[28]),"+f"(d[29]),"+f"(d[30]),"+f"(d[31])
        : "l"(dA + k * 128), "l"(dB + k * 128), "r"(k) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    const int w = tid / 32, l = tid % 32;
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
      for (int h = 0; h < 2; h++) *(float2*)(C + (size_t)t * 4096 + (w * 16 + l / 4 + 8 * h) * 64 + j * 8 + (l % 4) * 2) = make_float2(d[j * 4 + h * 2], d[j * 4 + h * 2 + 1]);
    __syncthreads();
  }
}
