"""PF113 pdl-unfenced: the same across a programmatic dependent launch."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF113",
    name="pdl-unfenced",
    severity=Severity.OFF,
    strict_severity=Severity.WARNING,
    summary=(
        "Global memory of the previous kernel is read by a bulk operation after griddepcontrol.wait without a "
        "proxy fence."
    ),
    why="""\
With programmatic dependent launch the kernel boundary that orders every proxy is replaced by `griddepcontrol.wait`.
Universal practice is to issue bulk loads straight after it, and PTX 9.4 words it as sufficient; one open report
sees wrong values that a fence in the first kernel removes. It could not be made to fail on an H200. Hence off by
default.
""",
    bad="""\
griddepcontrol.wait;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], 512, [full];
wait:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra wait;
""",
    good="""\
griddepcontrol.wait;
@%p0 fence.proxy.async.global;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], 512, [full];
wait:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra wait;
""",
    how_to_fix="""\
In the first kernel: `fence.proxy.async.global` and a barrier before `griddepcontrol.launch_dependents`. In the
second: `fence.proxy.async.global` after `griddepcontrol.wait`, in the thread that issues the bulk load.
""",
    when_to_ignore="""\
Nearly always, until a device is found that fails.
""",
    sources=(
        "PTX ISA 9.4, griddepcontrol.wait",
        "flashinfer-ai/flashinfer issue 3361",
        "H200: not made to fail (docs/hardware.md)",
    ),
)
