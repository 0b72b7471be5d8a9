"""PF111 fence-too-narrow: a proxy fence in the right place that covers other memory."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF111",
    name="fence-too-narrow",
    severity=Severity.ERROR,
    summary=(
        "A proxy fence stands where one is needed, but is limited to a state space that does not hold the "
        "bytes."
    ),
    why="""\
A state space on `fence.proxy.async` limits the fence to objects in that space. `.global` does nothing for shared
memory, and `.shared::cta` covers only the shared memory of the CTA whose thread executes it: a store into the
shared memory of another CTA of the cluster needs `.shared::cluster` (or a fence in the owning CTA after it has
synchronised).
""",
    bad="""\
st.shared.b32 [%r3], %r0;
fence.proxy.async.global;
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
Use the form that covers the bytes: `.shared::cta` for the executing CTA's shared memory, `.shared::cluster` where a
peer's shared memory is involved, `.global` for global memory, none for both.
""",
    when_to_ignore="""\
When a fence of the right width is executed elsewhere in a way that the analysis cannot see.
""",
    sources=(
        "PTX ISA 9.1, 9.7.13.4: state space of fence.proxy.async",
        "H200: .async.global in place of .shared::cta fails like no fence (docs/hardware.md)",
        "triton-lang/triton PR 10843: cluster form for multi-CTA",
    ),
)
