"""PF204 issuer-side-fence: a covering fence after the barrier, in the issuing thread only."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF204",
    name="issuer-side-fence",
    severity=Severity.OFF,
    strict_severity=Severity.NOTE,
    summary=(
        "The only proxy fence is executed after the barrier, by the thread that issues the asynchronous "
        "operation."
    ),
    why="""\
Most code fences in the threads that made the accesses, before the barrier. A fence by the issuing thread after the
barrier lies on the causality path as well, NVIDIA's own libraries use it, and it never failed on an H200; but no
sentence of the PTX ISA says that it is enough for the async proxy, and several projects changed it as a bug.
""",
    bad="""\
st.shared.b32 [%r3], %r0;
bar.sync 0;
@%p0 fence.proxy.async.shared::cta;
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
Move the fence in front of the barrier, into every thread that wrote or read the bytes.
""",
    when_to_ignore="""\
Whenever the shape is intended. It is accepted as covering and reported under `--strict` only.
""",
    sources=(
        "For the writers' side: CUDA C++ Programming Guide, TMA; pytorch/ao PR 4278; jax-ml/jax cdae5fcfc7",
        "For the issuer's side: NVIDIA/cccl PR 3671 (for_each_canceled) and CUB's bulk store",
        "H200: 0 wrong words in 1.0e12 either way (docs/hardware.md)",
    ),
)
