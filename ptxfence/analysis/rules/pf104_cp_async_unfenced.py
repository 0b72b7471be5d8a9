"""PF104 cp-async-unfenced: data of non-bulk cp.async or st.async, then an asynchronous access."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF104",
    name="cp-async-unfenced",
    severity=Severity.ERROR,
    conditions=(
        "`warning` where the completion is seen through an mbarrier only (`cp.async.mbarrier.arrive`): "
        "several vendors ship that without a fence."
    ),
    summary=(
        "Data copied by cp.async or sent by st.async is accessed by an asynchronous operation without a proxy "
        "fence after its completion."
    ),
    why="""\
In spite of its name, the non-bulk `cp.async` writes shared memory through the generic proxy, and so do `st.async`
and `red.async`. `wgmma`, `tcgen05.mma` and bulk copies read through the async proxy. The write happens when the
copy completes, so the fence must come after `cp.async.wait_group` (or the mbarrier wait): a fence between the copy
and its wait orders nothing.
""",
    bad="""\
cp.async.ca.shared.global [%r3], [%rd1], 4;
cp.async.wait_all;
bar.sync 0;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 512;
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group 0;
""",
    good="""\
cp.async.ca.shared.global [%r3], [%rd1], 4;
cp.async.wait_all;
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 512;
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group 0;
""",
    how_to_fix="""\
Fence after the completion wait in every thread that copied, before the barrier; or after the barrier in the threads
that issue the asynchronous operation. With `cp.async.mbarrier.arrive` only the second place exists. Triton up to
3.7.0 leaves this fence out in every pointer GEMM on sm_90 and newer: upgrade to 3.7.1 or later.
""",
    when_to_ignore="""\
Nowhere that the data is used. It did not fail on an H200 in 4e12 words, but it does on Blackwell.
""",
    sources=(
        "PTX ISA 9.1, cp.async (a weak operation of the generic proxy); 9.7.16.6 tcgen05",
        "pytorch/pytorch issue 181248; triton-lang/triton PR 9610, 10537, 10552: wrong results on B200",
        "sgl-project/sglang issue 39124: 86 of 100 runs differ on B300",
    ),
)
