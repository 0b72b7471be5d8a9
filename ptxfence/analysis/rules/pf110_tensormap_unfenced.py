"""PF110 tensormap-unfenced: tensor map modified, then used without release and acquire."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF110",
    name="tensormap-unfenced",
    severity=Severity.ERROR,
    summary=(
        "A tensor map is modified in the kernel and used by a tensor operation without a tensormap proxy "
        "release and acquire."
    ),
    why="""\
Tensor operations read the 128-byte map through a proxy of its own, behind a cache that ordinary stores do not
reach. A map that the kernel has modified must be released by the thread that modified it
(`fence.proxy.tensormap::generic.release`, or `tensormap.cp_fenceproxy` which copies and releases in one) and
acquired (`fence.proxy.tensormap::generic.acquire [map], 128`) before each first use afterwards. Without it the
operation may use the old map: wrong addresses, wrong sizes. `fence.proxy.async` is no substitute.
""",
    bad="""\
@%p0 tensormap.replace.tile.global_address.global.b1024.b64 [%rd3], %rd0;
bar.sync 0;
mov.u32 %r4, 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
@%p0 cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd3, {%r4}], [full];
wait:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra wait;
""",
    good="""\
@%p0 tensormap.replace.tile.global_address.global.b1024.b64 [%rd3], %rd0;
@%p0 fence.proxy.tensormap::generic.release.gpu;
bar.sync 0;
@%p0 fence.proxy.tensormap::generic.acquire.gpu [%rd3], 128;
mov.u32 %r4, 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
@%p0 cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd3, {%r4}], [full];
wait:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra wait;
""",
    how_to_fix="""\
Release in the thread (for `tensormap.cp_fenceproxy`: the warp) that modified the map, synchronise, then acquire in
the thread that uses it, or in one thread before a barrier that the user waits for. Scope `.cta` if the same CTA
uses it, `.gpu` otherwise, `.sys` for maps that the host wrote into device memory. CUTLASS:
`cute::tma_descriptor_fence_release()` and `cute::tma_descriptor_fence_acquire()`.
""",
    when_to_ignore="""\
When the map is a `__grid_constant__` parameter or in constant memory: such maps are never modified and never
reported.
""",
    sources=(
        "PTX ISA 9.1, 9.7.13.4 fence.proxy.tensormap; 8.6 Proxies; 8.9.4",
        "triton-lang/triton issue 4332, PR 4342, PR 4498",
        "deepseek-ai/DeepGEMM PR 343; NVIDIA/cutlass issues 2162, 2912",
    ),
)
