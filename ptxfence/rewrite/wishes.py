"""What a caller wants repaired, and what has to be cut for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxfence.analysis.report import Cause, Finding, Report, Severity
from ptxfence.rewrite.draft import Draft
from ptxfence.rewrite.kernel import Kernel
from ptxfence.rewrite.placement import Demand

REPAIRED = frozenset({"PF101", "PF102", "PF103", "PF104", "PF111", "PF112"})
"""Rules whose findings a fence repairs (contract 2)."""


@dataclass(frozen=True, slots=True)
class Saving:
    """What optimising won at one fence: cycles of one execution, and the loops around it. `line` is the original's."""

    line: int
    rule: str
    what: str
    cycles: int
    depth: int


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller wants repaired: `report` holds its findings, `raw` all that the analysis has for the original."""

    report: Report
    raw: Report
    level: Severity

    def of(self, finding: Finding, draft: Draft) -> bool:
        """Whether a finding on the draft's text is to be repaired."""
        wished = self._severity(finding, draft)
        return wished is not None and wished >= self.level and repairable(finding)

    def _severity(self, finding: Finding, draft: Draft) -> Severity | None:
        """As the caller settled it where the original has the finding; None where the caller left it out."""
        key = _key(finding, draft)
        settled = {_key(f, None): f.severity for f in self.report.findings}
        if key in settled:
            return settled[key]
        return None if key in {_key(f, None) for f in self.raw.findings} else finding.severity


def _key(finding: Finding, draft: Draft | None) -> tuple[str, str, int | None]:
    place = finding.second or finding.first
    return finding.rule, finding.kernel, place.line if draft is None else draft.line_origin(place.line)


def repairable(finding: Finding) -> bool:
    """Whether a fence repairs the finding."""
    return finding.rule in REPAIRED and finding.cause is not Cause.UNSYNCHRONISED and finding.anchor is not None


def demands(kernel: Kernel, wishes: Wishes, draft: Draft) -> Iterator[Demand]:
    """What must be cut: findings of the open flow that are wished for, which includes those that hide behind others."""
    for hazard, finding in kernel.findings:
        if finding.second is None or not wishes.of(finding, draft):
            continue
        accesses = {finding.first.instruction, *(place.instruction for place in finding.others)}
        bits = 0
        for bit, touch in kernel.conflicts.touches_of(hazard.accesses):
            bits |= bit if touch.index in accesses else 0
        yield Demand(hazard.operation.touch.number, bits, frozenset((finding.rule,)))
