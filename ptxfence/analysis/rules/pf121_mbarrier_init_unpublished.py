"""PF121 mbarrier-init-unpublished: mbarrier.init, then a use that nothing orders after it."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF121",
    name="mbarrier-init-unpublished",
    severity=Severity.ERROR,
    summary=(
        "An mbarrier is used by another thread or another CTA with nothing that orders the use after its "
        "initialisation."
    ),
    why="""\
`mbarrier.init` is an ordinary write to shared memory. Other threads of the CTA must be kept from the mbarrier by a
barrier, other CTAs of the cluster by `fence.mbarrier_init.release.cluster` followed by a cluster barrier (or a
cluster barrier with release and acquire). An arrive on an uninitialised mbarrier is undefined; usually the kernel
hangs. A proxy fence is neither needed nor enough.
""",
    bad="""\
@%p0 mbarrier.init.shared.b64 [ready], 128;
mbarrier.arrive.shared.b64 _, [ready];
""",
    good="""\
@%p0 mbarrier.init.shared.b64 [ready], 128;
bar.sync 0;
mbarrier.arrive.shared.b64 _, [ready];
""",
    how_to_fix="""\
`bar.sync` (`__syncthreads()`) after the initialisation; for use by peers `fence.mbarrier_init.release.cluster` in
the initialising thread and a cluster barrier.
""",
    when_to_ignore="""\
When the use is ordered after the initialisation by a mechanism that the analysis does not follow, such as a flag in
global memory.
""",
    sources=(
        "PTX ISA 9.1, mbarrier.init; 9.7.13.4 fence.mbarrier_init",
        "Seen in: tile-ai/tilelang PR 1121 and 1733; MoonshotAI/FlashKDA PR 25; NVIDIA/Fuser PR 1769",
    ),
)
