"""From a report to a patched text: the cheapest fences that repair its findings, checked again afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir

from ptxfence.analysis.check import analyse
from ptxfence.analysis.report import Edit, Finding, Report, Severity
from ptxfence.errors import RecheckError
from ptxfence.grammar import PtxFile, parse
from ptxfence.rewrite.atomic import create
from ptxfence.rewrite.draft import Draft
from ptxfence.rewrite.forms import CLUSTER, OWN
from ptxfence.rewrite.kernel import Kernel
from ptxfence.rewrite.placement import Demand, plan
from ptxfence.rewrite.recheck import recheck
from ptxfence.rewrite.roots import roots, routine
from ptxfence.rewrite.wishes import Saving, Wishes, demands, repairable

MAX_ROUNDS = 3

Pair = tuple[int, int]
"""An access and an async operation, as offsets of their instructions in the original text."""


@dataclass(frozen=True, slots=True)
class Patch:
    """`edits` are made to the original text and give `text`; `before` and `after` are the reports of both texts."""

    text: str
    edits: tuple[Edit, ...]
    before: Report
    after: Report
    savings: tuple[Saving, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.edits)


def fix(
    file: PtxFile, report: Report, *, level: Severity, policy: str = "writer-side", optimize: bool = False
) -> Patch:
    """Inserts the fences that the findings of `report` at or above `level` need.

    `policy`: "writer-side" puts them before the synchronisation wherever that is possible, "cheapest" where they
    cost least. `optimize` then narrows, hoists and removes fences of proven kernels. Findings that no fence repairs
    stay. Raises RecheckError if recheck.py does not agree that the patch covers what it is for.
    """
    draft, after = Draft(file.text), report
    pairs: set[Pair] = set()
    if any(finding.severity >= level and repairable(finding) for finding in report.findings):
        wishes = Wishes(report, analyse(file), level)
        draft, after = _repaired(file, wishes, policy, pairs)
        draft, after = _narrowed(file, draft, after, wishes, pairs)
        _recheck(file, draft, pairs)
    savings: tuple[Saving, ...] = ()
    if optimize:
        from ptxfence.rewrite.optimize import optimized

        draft, after, savings = optimized(file, draft, report)
    return Patch(draft.text, draft.edits, report, after, savings)


def _repaired(file: PtxFile, wishes: Wishes, policy: str, pairs: set[Pair]) -> tuple[Draft, Report]:
    """Rounds of placing and analysing, until nothing wished for is left or nothing more can be placed."""
    draft, current, report = Draft(file.text), file, wishes.raw
    for _ in range(MAX_ROUNDS):
        edits = tuple(_edits(current, report, wishes, draft, policy, pairs))
        if not edits:
            break
        draft = draft.revise(edits)
        current = parse(draft.text, file.filename)
        report = analyse(current)
    return draft, report if draft.edits else wishes.report


def _narrowed(file: PtxFile, draft: Draft, report: Report, wishes: Wishes, pairs: set[Pair]) -> tuple[Draft, Report]:
    """With wide fences narrowed that need not be wide once all others are there.

    Placement prices a form by what is pending without any fence: in a loop that includes what has come around, which
    the same fence, where the peer runs it, would have covered.
    """
    for number, edit in enumerate(draft.edits):
        if edit.insert != CLUSTER.statement:
            continue
        edits = [replace(e, insert=OWN.statement) if n == number else e for n, e in enumerate(draft.edits)]
        smaller = Draft(file.text, tuple(edits))
        again = analyse(parse(smaller.text, file.filename))
        if _open(again, smaller, wishes) <= _open(report, draft, wishes) and not _left(file, smaller, pairs):
            draft, report = smaller, again
    return draft, report


def _open(report: Report, draft: Draft, wishes: Wishes) -> int:
    return sum(1 for finding in report.findings if wishes.of(finding, draft))


def _edits(
    file: PtxFile, report: Report, wishes: Wishes, draft: Draft, policy: str, pairs: set[Pair]
) -> Iterator[Edit]:
    for module, function in roots(file):
        wanted = [f for f in report.findings if f.kernel == function.name and wishes.of(f, draft)]
        if wanted:
            yield from _kernel_edits(Kernel(file, module, function), wanted, wishes, draft, policy, pairs)


def _kernel_edits(
    kernel: Kernel, wanted: list[Finding], wishes: Wishes, draft: Draft, policy: str, pairs: set[Pair]
) -> Iterator[Edit]:
    asked = list(demands(kernel, wishes, draft))
    placed, hopeless = plan(kernel, asked, policy)
    for fence in placed:
        yield Edit(fence.line, fence.form.statement, fence.rules)
    for demand in asked:
        if demand not in hopeless:
            pairs.update(_pairs(kernel, demand, draft))
    served = {kernel.conflicts.operations[d.operation].touch.index for d in asked}
    yield from _anchored(kernel, (f for f in wanted if f.second is None or f.second.instruction not in served))


def _pairs(kernel: Kernel, demand: Demand, draft: Draft) -> Iterator[Pair]:
    code = kernel.cfg.instructions
    second = draft.origin(code[kernel.conflicts.operations[demand.operation].touch.index].start)
    for _, touch in kernel.conflicts.touches_of(demand.bits):
        first = draft.origin(code[touch.index].start)
        if first is not None and second is not None:
            yield first, second


def _anchored(kernel: Kernel, findings: Iterable[Finding]) -> Iterator[Edit]:
    """Fences for findings outside of the flow: each before its anchor, one for all that share it."""
    found: dict[tuple[int, str], set[str]] = {}
    for finding in findings:
        line = kernel.line_before(finding.anchor) if finding.anchor is not None else None
        if line is not None and finding.fence is not None:
            found.setdefault((line, finding.fence), set()).add(finding.rule)
    for (line, fence), rules in found.items():
        yield Edit(line, fence, tuple(sorted(rules)))


def _recheck(file: PtxFile, draft: Draft, pairs: set[Pair]) -> None:
    """Raises RecheckError if a pair that the patch is for has an uncovered path left."""
    left = _left(file, draft, pairs)
    if left is not None:
        name, first, second = left
        raise RecheckError(
            f"{file.filename}: {name}: the second opinion finds line {first} still unfenced against line "
            f"{second} of the patched text; nothing was written. This is a bug of ptxfence, please report it with "
            f"{_reproducer(file.text)}"
        )


def _left(file: PtxFile, draft: Draft, pairs: set[Pair]) -> tuple[str, int, int] | None:
    """Kernel and lines of a pair of `pairs` that the recheck still finds, None if there is none."""
    if not draft.edits or not pairs:
        return None
    current = parse(draft.text, file.filename)
    for module, function in roots(current):
        body = routine(module, function)
        origins = [draft.origin(instruction.start) for instruction in body.instructions]
        left = recheck(module, body, lambda a, o, at=origins: (at[a], at[o]) in pairs)
        if left:
            spans = [body.instructions[i] for i in (left[0].access, left[0].operation)]
            first, second = (current.position(instruction.start)[0] for instruction in spans)
            return function.name, first, second
    return None


def _reproducer(text: str) -> str:
    """Keeps the text that could not be patched; its path."""
    data = text.encode("utf-8", "surrogateescape")
    path = Path(gettempdir()) / f"ptxfence-reproducer-{sha256(data).hexdigest()[:12]}.ptx"
    create(path, data)
    return str(path)
