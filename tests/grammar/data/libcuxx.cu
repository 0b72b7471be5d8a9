#include <cuda/ptx>
#include <cuda/barrier>
namespace ptx = cuda::ptx;
__global__ void k(int *out, const int *in) {
  __shared__ alignas(128) int buf[1024];
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  __syncthreads();
  if (threadIdx.x == 0) { ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, buf, in, sizeof(buf), &bar); auto t = ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof(buf)); }
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
  buf[threadIdx.x] += 1;
  ptx::fence_proxy_async(ptx::space_shared); __syncthreads();
  if (threadIdx.x == 0) { ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, buf, sizeof(buf)); ptx::cp_async_bulk_commit_group(); ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>()); }
}
