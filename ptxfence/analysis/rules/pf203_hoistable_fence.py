"""PF203 hoistable-fence: a proxy fence in a loop for accesses outside it."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF203",
    name="hoistable-fence",
    severity=Severity.NOTE,
    summary=(
        "This proxy fence runs in every iteration of a loop although the accesses that need it are outside "
        "the loop."
    ),
    why="""\
Once the accesses before the loop are fenced, repeating the fence in each iteration orders nothing more and stalls
every time.
""",
    bad="""\
st.shared.b32 [%r3], %r0;
mov.u32 %r4, 0;
loop:
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 512;
@%p0 cp.async.bulk.commit_group;
add.u32 %r4, %r4, 1;
setp.lt.u32 %p2, %r4, 8;
@%p2 bra loop;
@%p0 cp.async.bulk.wait_group 0;
""",
    good="""\
st.shared.b32 [%r3], %r0;
fence.proxy.async.shared::cta;
mov.u32 %r4, 0;
loop:
bar.sync 0;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 512;
@%p0 cp.async.bulk.commit_group;
add.u32 %r4, %r4, 1;
setp.lt.u32 %p2, %r4, 8;
@%p2 bra loop;
@%p0 cp.async.bulk.wait_group 0;
""",
    how_to_fix="""\
Move it in front of the loop, after the accesses that need it. `ptxfence fix --optimize` does so where the kernel is
proven afterwards.
""",
    when_to_ignore="""\
When the loop nearly always runs once.
""",
    sources=(
        "triton-lang/triton, FenceInsertion: hoisting out of loops",
        "NVIDIA/Fuser PR 3136",
        "H200: cost of the forms (docs/hardware.md)",
    ),
)
