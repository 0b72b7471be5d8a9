"""PF120 completion-unobserved: an asynchronous operation still in flight when its bytes are reused."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF120",
    name="completion-unobserved",
    severity=Severity.ERROR,
    conditions="`warning` where it is not provable.",
    summary="An asynchronous operation may still be in flight when its bytes are reused.",
    why="""\
Asynchronous operations run after the instruction that starts them. Until their completion has been observed
(`cp.async.bulk.wait_group`, `wgmma.wait_group`, an mbarrier wait, `tcgen05.commit` and the wait for it), their
source must not be overwritten and their destination must not be read. Groups belong to the thread that issued the
operation: a wait in another thread waits for nothing. No proxy fence repairs it.
""",
    bad="""\
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 512;
@%p0 cp.async.bulk.commit_group;
bar.sync 0;
st.shared.b32 [%r3], %r0;
""",
    good="""\
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 512;
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group.read 0;
bar.sync 0;
st.shared.b32 [%r3], %r0;
""",
    how_to_fix="""\
Wait for the operation in the thread that issued it, then synchronise with the threads that reuse the bytes.
""",
    when_to_ignore="""\
When another mechanism guarantees completion, such as a dependency through global memory that the analysis does not
follow.
""",
    sources=(
        "PTX ISA 9.1, 8.9.1.1; cp.async.bulk.wait_group, wgmma.wait_group, tcgen05.commit",
        "Seen in: tile-ai/TileOPs PR 1550; NVIDIA/Fuser PR 3865; Dao-AILab/flash-attention PR 2634",
    ),
)
