"""From a report to a patched text: the cheapest fences that repair its findings, checked again afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ptxfence.analysis.check import analyse
from ptxfence.analysis.report import Cause, Edit, Finding, Report, Severity
from ptxfence.grammar import Function, Module, PtxFile, parse
from ptxfence.grammar.model import FunctionKind
from ptxfence.rewrite.edits import apply
from ptxfence.rewrite.kernel import Kernel
from ptxfence.rewrite.placement import Demand, plan

REPAIRED = frozenset({"PF101", "PF102", "PF103", "PF104", "PF111", "PF112"})
"""Rules whose findings a fence repairs (contract 2)."""


@dataclass(frozen=True, slots=True)
class Patch:
    """`edits` are made to the original text and give `text`; `before` and `after` are the reports of both texts."""

    text: str
    edits: tuple[Edit, ...]
    before: Report
    after: Report

    @property
    def changed(self) -> bool:
        return bool(self.edits)


def fix(
    file: PtxFile, report: Report, *, level: Severity, policy: str = "writer-side", optimize: bool = False
) -> Patch:
    """Inserts the fences that the findings of `report` at or above `level` need.

    `policy`: "writer-side" puts them before the synchronisation wherever that is possible, "cheapest" where they
    cost least. Findings that no fence repairs stay. Raises RecheckError if the result does not hold.
    """
    edits = tuple(_edits(file, report, level, policy))
    if not edits:
        return Patch(file.text, (), report, report)
    text = apply(file.text, edits)
    after = analyse(parse(text, file.filename))
    return Patch(text, edits, report, after)


def _edits(file: PtxFile, report: Report, level: Severity, policy: str) -> Iterator[Edit]:
    for module, function in kernels(file):
        wanted = [f for f in report.findings if f.kernel == function.name and repairable(f, level)]
        if wanted:
            yield from _kernel_edits(Kernel(file, module, function), report, wanted, level, policy)


def kernels(file: PtxFile) -> Iterator[tuple[Module, Function]]:
    """Entries with a body, in text order."""
    for module in file.modules:
        for function in module.functions:
            if function.has_body and function.kind is FunctionKind.ENTRY:
                yield module, function


def repairable(finding: Finding, level: Severity) -> bool:
    """Whether a fence repairs the finding and it is grave enough."""
    return (
        finding.rule in REPAIRED
        and finding.severity >= level
        and finding.cause is not Cause.UNSYNCHRONISED
        and finding.anchor is not None
    )


def _kernel_edits(
    kernel: Kernel, report: Report, wanted: list[Finding], level: Severity, policy: str
) -> Iterator[Edit]:
    demands = list(_demands(kernel, report, wanted, level))
    placed, _ = plan(kernel, demands, policy)
    for fence in placed:
        yield Edit(fence.line, fence.form.statement, fence.rules)
    served = {kernel.conflicts.operations[d.operation].touch.index for d in demands}
    yield from _anchored(kernel, (f for f in wanted if f.second is None or f.second.instruction not in served))


def _demands(kernel: Kernel, report: Report, wanted: list[Finding], level: Severity) -> Iterator[Demand]:
    """What must be cut: the findings of the open flow that are asked for, or that stand behind one that is.

    A finding that the closed report knows but does not hold any more was suppressed by the caller.
    """
    keys = {(f.rule, f.second.instruction) for f in wanted if f.second is not None}
    closed = {
        (f.rule, f.second.instruction)
        for f in analyse(kernel.file, kernel=kernel.function.name).findings
        if f.second is not None
    }
    for hazard, finding in kernel.findings:
        if finding.second is None or not repairable(finding, Severity.NOTE):
            continue
        key = (finding.rule, finding.second.instruction)
        if key not in keys and (key in closed or finding.severity < level):
            continue
        accesses = {finding.first.instruction, *(place.instruction for place in finding.others)}
        bits = 0
        for bit, touch in kernel.conflicts.touches_of(hazard.accesses):
            bits |= bit if touch.index in accesses else 0
        yield Demand(hazard.operation.touch.number, bits, frozenset((finding.rule,)))


def _anchored(kernel: Kernel, findings: Iterable[Finding]) -> Iterator[Edit]:
    """Fences for findings outside of the flow: each before its anchor, one for all that share it."""
    found: dict[tuple[int, str], set[str]] = {}
    for finding in findings:
        line = kernel.line_before(finding.anchor) if finding.anchor is not None else None
        if line is not None and finding.fence is not None:
            found.setdefault((line, finding.fence), set()).add(finding.rule)
    for (line, fence), rules in found.items():
        yield Edit(line, fence, tuple(sorted(rules)))
