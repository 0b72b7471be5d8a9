"""PF101 missing-fence-raw: generic write, then asynchronous read."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF101",
    name="missing-fence-raw",
    severity=Severity.ERROR,
    conditions=(
        "`warning`, with confidence `possible`, where the storing thread has waited for the asynchronous operation and "
        "another role writes all the bytes again, fences them and hands them over before the operation reads: that the "
        "role comes last is then a matter of barrier phases, which are not followed."
    ),
    summary="Data written by ordinary stores is read by an asynchronous operation without a proxy fence between.",
    why="""\
Ordinary stores go through the generic proxy; bulk and tensor copies, `wgmma` and `tcgen05.mma` read shared memory
through the async proxy. A barrier orders the threads, but not the two proxies: the asynchronous unit may read the
bytes as they were before the store. No barrier, `__syncthreads()`, `fence.acq_rel` or `wgmma.fence` changes that;
only an async proxy fence does. On an H200 a missing fence spoils between 1 and 100 % of the words as soon as the
stores have bank conflicts or other warps use shared memory, and nothing at all in a quiet test, which is why it
survives testing. compute-sanitizer does not see it.
""",
    bad="""\
st.shared.b32 [%r3], %r0;
bar.sync 0;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 512;
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group 0;
""",
    good="""\
st.shared.b32 [%r3], %r0;
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 512;
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group 0;
""",
    how_to_fix="""\
Let every thread that wrote execute `fence.proxy.async.shared::cta` after its last store and before the barrier or
the mbarrier arrive that hands the data over. A fence executed after the barrier by the thread that issues the
asynchronous operation orders the same accesses (see PF204). Use `.shared::cluster` where the bytes belong to
another CTA of the cluster. `ptxfence fix` inserts the fence.
""",
    when_to_ignore="""\
When the bytes that overlap are never used: padding, or lanes of a tile that the consumer masks. Say so in the
reason of the suppression comment.
""",
    sources=(
        "PTX ISA 9.1, 8.6 Proxies; 9.7.9.25.2 Async proxy; 9.7.15.4 wgmma; 9.7.16.6 tcgen05",
        "CUDA C++ Programming Guide, Tensor Memory Accelerator: fence, then barrier, then copy",
        "H200: 1 to 100 % wrong words without the fence, none in 1.0e12 with it (docs/hardware.md)",
        "Seen in: inclusionAI/cuLA PR 77 and 114; tile-ai/TileOPs PR 1574; MoonshotAI/FlashKDA issue 24",
        "Seen in: tile-ai/tilelang issue 2634 (sparse GEMM, reduced kernel fails on an H100)",
    ),
)
