"""PF301 undecided: something stopped the proof."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF301",
    name="undecided",
    severity=Severity.NOTE,
    summary="The kernel could be neither proven nor refuted; the finding names what stopped the proof.",
    why="""\
ptxfence calls a kernel proven only if it understands every instruction and every address that could matter. An
address that comes from memory, a call to an unknown function, an instruction that it does not know or a time limit
leaves the question open. That is not a hazard, and it is not a clean bill either.
""",
    bad="""\
st.shared.b32 [%r3], %r0;
fence.proxy.async.shared::cta;
call helper;
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
Look at the construct that the finding names. Where an address is computed in a way that hides its range, address
the buffer through its symbol. Where the time limit struck, raise `--timeout`. An instruction that ptxfence does not
know is worth a report.
""",
    when_to_ignore="""\
By default it is a note and fails nothing. Under `--strict` an undecided kernel ends with exit status 3.
""",
    sources=(
        "docs/model.md: what is proven, and on which assumptions",
    ),
)
