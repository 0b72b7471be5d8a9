"""PF202 over-wide-fence: a proxy fence wider than what needs it."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF202",
    name="over-wide-fence",
    severity=Severity.NOTE,
    summary="A narrower form of this proxy fence covers everything that needs it.",
    why="""\
The unqualified form and `.shared::cluster` wait at GPU scope: about 290 cycles with nothing outstanding and 500 to
1000 with global traffic in flight, against 25 to 40 for `.shared::cta`. In a GEMM's main loop the unqualified form
costs 15 %, the narrow one nothing that can be measured.
""",
    bad="""\
st.shared.b32 [%r3], %r0;
fence.proxy.async;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
@%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [tile+2048], [tile], 512, [full];
wait:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra wait;
""",
    good="""\
st.shared.b32 [%r3], %r0;
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
@%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [tile+2048], [tile], 512, [full];
wait:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra wait;
""",
    how_to_fix="""\
`fence.proxy.async.shared::cta` where all the bytes lie in the executing CTA's shared memory. `ptxfence fix
--optimize` narrows it where the kernel is proven with the narrow form. In CUDA C++:
`cuda::ptx::fence_proxy_async(cuda::ptx::space_shared)` in place of `cuda::ptx::fence_proxy_async()`.
""",
    when_to_ignore="""\
When global accesses depend on it. The rule never fires while a generic access to global memory may reach the fence
and a bulk operation on global memory may follow.
""",
    sources=(
        "PTX ISA 9.1, 9.7.13.4: state space of fence.proxy.async",
        "NVIDIA/Fuser PR 4804: 84 to 90 % of cuBLAS by narrowing",
        "H200: cost of the forms (docs/hardware.md)",
    ),
)
