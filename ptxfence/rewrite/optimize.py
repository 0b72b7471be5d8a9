"""Fences that a proven kernel can do without, or with less: removed, narrowed, moved out of loops.

The notes PF201 to PF203 say where. Each step is made on the text and kept only if the analysis still proves the
kernel and the recheck finds nothing that it did not find before (a note may stand); kernels that are not proven are
left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ptxfence.analysis.check import analyse
from ptxfence.analysis.report import Edit, Finding, Report, Severity, Verdict
from ptxfence.grammar import PtxFile, parse
from ptxfence.rewrite.draft import Draft
from ptxfence.rewrite.edits import remove_statement, replace_opcode
from ptxfence.rewrite.forms import OWN, cycles_of
from ptxfence.rewrite.kernel import Kernel
from ptxfence.rewrite.placement import LOOP_FACTOR, Placed, plan
from ptxfence.rewrite.recheck import recheck
from ptxfence.rewrite.roots import roots, routine
from ptxfence.rewrite.wishes import Saving, Wishes, demands, repairable

ADVICE = ("PF201", "PF202", "PF203")
MAX_STEPS = 64


class _Work:
    """The text as it is now, and what was won so far."""

    def __init__(self, file: PtxFile, draft: Draft) -> None:
        self.filename = file.filename
        self.draft = draft
        self.read()
        self.savings: list[Saving] = []

    def read(self) -> None:
        self.file = parse(self.draft.text, self.filename)
        self.report = analyse(self.file)


def optimized(file: PtxFile, draft: Draft, report: Report) -> tuple[Draft, Report, tuple[Saving, ...]]:
    """The draft after every step that holds, its report, and what the steps save.

    Advice that `report`, the caller's of the original, leaves out is not followed.
    """
    work = _Work(file, draft)
    left_out = _left_out(file, report)
    tried: set[tuple[str, int | None, str]] = set()
    for _ in range(MAX_STEPS):
        open_ = (f for f in _advice(work) if _mark(f, work) not in tried)
        advice = next((f for f in open_ if _mark(f, work)[:2] not in left_out), None)
        if advice is None:
            break
        tried.add(_mark(advice, work))
        _step(work, advice)
    return work.draft, work.report, tuple(work.savings)


def _left_out(file: PtxFile, report: Report) -> set[tuple[str, int | None]]:
    told = {(f.rule, f.first.line) for f in report.findings}
    known = {(f.rule, f.first.line) for f in analyse(file).findings if f.rule in ADVICE}
    return set[tuple[str, int | None]](known - told)


def _mark(advice: Finding, work: _Work) -> tuple[str, int | None, str]:
    return advice.rule, work.draft.line_origin(advice.first.line), advice.first.text


def _advice(work: _Work) -> Iterator[Finding]:
    """Removals first (the later of two equal fences goes), then narrowing, then moving."""
    proven = {k.name for k in work.report.kernels if k.verdict is Verdict.PROVEN}
    found = [f for f in work.report.findings if f.rule in ADVICE and f.kernel in proven]
    yield from sorted(found, key=lambda f: (f.rule, -f.first.line))


def _step(work: _Work, advice: Finding) -> None:
    """Tries one piece of advice; keeps the result if it holds."""
    module, function = next((m, f) for m, f in roots(work.file) if f.name == advice.kernel)
    kernel = Kernel(work.file, module, function)
    owner, index = kernel.origin(advice.first.instruction)
    opcode = owner.instructions[index].opcode
    depth = kernel.cfg.depth(advice.first.instruction)
    line = work.draft.line_origin(advice.first.line) or advice.first.line
    if advice.rule == "PF202":
        edit = replace_opcode(work.file, owner, index, OWN.opcode)
        saving = Saving(line, advice.rule, f"{opcode} -> {OWN.opcode}", cycles_of(opcode) - OWN.cycles, depth)
        marked = replace(edit, rules=(advice.rule,)) if edit else None
        _keep_if_good(work, advice.kernel, work.draft.revise([marked]) if marked else None, saving)
        return
    edit = remove_statement(work.file, owner, index)
    bare = work.draft.revise([edit]) if edit else None
    if advice.rule == "PF201":
        _keep_if_good(work, advice.kernel, bare, Saving(line, advice.rule, f"no {opcode}", cycles_of(opcode), depth))
        return
    _move(work, advice, bare, cycles_of(opcode) * LOOP_FACTOR**depth, Saving(line, advice.rule, "", 0, depth))


def _move(work: _Work, advice: Finding, bare: Draft | None, price: int, saving: Saving) -> None:
    """Takes the fence out and lets placement put it where it costs less."""
    if bare is None:
        return
    file = parse(bare.text, work.filename)
    module, function = next((m, f) for m, f in roots(file) if f.name == advice.kernel)
    kernel = Kernel(file, module, function)
    placed = _cheapest(kernel, bare)
    total = sum(fence.estimate for fence in placed)
    if not placed or total >= price:
        return
    edits = [Edit(fence.line, fence.form.statement, (advice.rule,)) for fence in placed]
    where = ", ".join(str(bare.line_origin(fence.line) or fence.line) for fence in placed)
    what = f"moved before line {where}"
    cycles = (price - total) // LOOP_FACTOR**saving.depth
    _keep_if_good(work, advice.kernel, bare.revise(edits), Saving(saving.line, saving.rule, what, cycles, saving.depth))


def _cheapest(kernel: Kernel, draft: Draft) -> tuple[Placed, ...]:
    nothing = Report("", "", "", (), ())
    placed, hopeless = plan(kernel, list(demands(kernel, Wishes(nothing, nothing, Severity.NOTE), draft)), "cheapest")
    return () if hopeless else placed


def _keep_if_good(work: _Work, kernel: str, draft: Draft | None, saving: Saving) -> None:
    """Takes the new text if the analysis proves the kernel with no finding it did not have, and the recheck agrees."""
    if draft is None:
        return
    file = parse(draft.text, work.filename)
    report = analyse(file)
    if any(k.name == kernel and k.verdict is not Verdict.PROVEN for k in report.kernels):
        return
    if _grave(report) > _grave(work.report):
        return
    if not _uncovered(file, draft, kernel) <= _uncovered(work.file, work.draft, kernel):
        return
    work.draft, work.file, work.report = draft, file, report
    work.savings.append(saving)


def _grave(report: Report) -> int:
    return sum(1 for finding in report.findings if repairable(finding))


def _uncovered(file: PtxFile, draft: Draft, kernel: str) -> set[tuple[int | None, int | None]]:
    """What the recheck finds in a kernel, as places of the original."""
    found: set[tuple[int | None, int | None]] = set()
    for module, function in roots(file):
        if function.name == kernel:
            body = routine(module, function)
            at = [draft.origin(instruction.start) for instruction in body.instructions]
            found.update((at[pair.access], at[pair.operation]) for pair in recheck(module, body))
    return found
