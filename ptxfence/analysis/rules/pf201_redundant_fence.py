"""PF201 redundant-fence: a proxy fence that orders nothing."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF201",
    name="redundant-fence",
    severity=Severity.NOTE,
    summary="No access that reaches this proxy fence needs it.",
    why="""\
A proxy fence stalls until the outstanding accesses of the thread have drained: 25 to 40 cycles for `.shared::cta`
with nothing outstanding, about 290 for the unqualified form, 500 to 1000 with global traffic. Asynchronous writes
that have completed are visible to ordinary loads, completed asynchronous reads allow ordinary overwriting,
asynchronous operations among themselves need no proxy fence, and neither does `mbarrier.init`. One such fence in
the main loop cost an H100 GEMM almost half its speed.
""",
    bad="""\
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], 512, [full];
wait:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra wait;
fence.proxy.async.shared::cta;
ld.shared.b32 %r4, [%r3];
st.global.b32 [%rd1], %r4;
""",
    good="""\
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], 512, [full];
wait:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra wait;
ld.shared.b32 %r4, [%r3];
st.global.b32 [%rd1], %r4;
""",
    how_to_fix="""\
Delete it. `ptxfence fix --optimize` does so where the kernel is proven without it.
""",
    when_to_ignore="""\
When it is there for a reason outside the kernel, or kept for uniformity at no measurable cost. `ptxfence fences`
says for every fence which accesses it orders.
""",
    sources=(
        "PTX ISA 9.1, 9.7.9.25.2: completion includes the generic-async fence",
        "NVIDIA/Fuser PR 3136: 26 to 46.6 % of cuBLAS after removing one",
        "H200: cost of the forms (docs/hardware.md)",
    ),
)
