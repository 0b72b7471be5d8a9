"""Patches one text and decides whether the result may be used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ptxfence.analysis.report import Finding
from ptxfence.batch.examine import Options, Task, examine, file_error, raw_report, result_of
from ptxfence.config import Settings
from ptxfence.errors import AssemblyError, PtxFenceError
from ptxfence.triage.baseline import load
from ptxfence.triage.result import FileResult, failure
from ptxfence.triage.settle import settle


@dataclass(frozen=True, slots=True)
class Patched:
    """The outcome for one file: `text` is the new text (the old one where nothing changed or something failed).

    `result` is the settled result of the new text, `remarks` are lines for the person: what ptxas made of it.
    """

    path: str
    before: str
    text: str
    result: FileResult
    inserted: int = 0
    remarks: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return self.text != self.before


def patch(task: Task, settings: Settings, *, assemble: bool | None) -> Patched:
    """Insert the fences that the active findings ask for.

    `assemble` re-assembles both texts; None does so where a ptxas is found. An error of any kind leaves the text as it
    was and becomes the error of the result.
    """
    try:
        return _patch(task, settings, assemble)
    except PtxFenceError as error:
        result = failure(task.path, task.sha256, error.kind, str(error))
    except Exception:
        result = _as_internal(task)
    return Patched(task.path, task.text, task.text, result)


def _patch(task: Task, settings: Settings, assemble: bool | None) -> Patched:
    from ptxfence.grammar import parse, validate
    from ptxfence.rewrite.patch import fix

    file = parse(task.text, task.path)
    errors = validate(file)
    if errors:
        result = FileResult(task.path, task.sha256, errors=tuple(map(file_error, errors)))
        return Patched(task.path, task.text, task.text, result)
    options = Options(settings.kernel, settings.timeout, settings.strict)
    report = raw_report(file, options)
    settled = settle(result_of(file, report, task.sha256), settings)
    if settings.baseline is not None:
        (settled,) = load(settings.baseline).apply((settled,))
    wanted = replace(report, findings=settled.active)
    patched = fix(file, wanted, level=settings.fix_level, policy=settings.policy, optimize=settings.optimize)
    if patched.text == task.text:
        return Patched(task.path, task.text, task.text, settled)
    remarks = _assembled(task.text, patched.text, task.path, assemble)
    after = examine(replace(task, text=patched.text, options=options))
    known = _still_suppressed(settled.findings)
    after = settle(after, settings)
    after = replace(after, findings=tuple(_keep(finding, known) for finding in after.findings))
    inserted = len(patched.edits)
    return Patched(task.path, task.text, patched.text, after, inserted, remarks)


def _still_suppressed(findings: Iterable[Finding]) -> dict[str, str]:
    return {finding.id: finding.suppressed for finding in findings if finding.suppressed}


def _keep(finding: Finding, known: dict[str, str]) -> Finding:
    """The finding with the suppression that it had before the patch."""
    return replace(finding, suppressed=finding.suppressed or known.get(finding.id))


def _assembled(before: str, after: str, path: str, wanted: bool | None) -> tuple[str, ...]:
    """What ptxas makes of both texts. Raises AssemblyError where it refuses the new one, or the old one if asked."""
    from ptxfence.rewrite.assemble import available, build
    from ptxfence.rewrite.sass import compare

    if wanted is False or (wanted is None and not available()):
        return ()
    try:
        old = build(before, filename=path)
    except AssemblyError as error:
        if wanted:
            raise
        return (f"not re-assembled, ptxas does not take the original: {error}",)
    new = build(after, filename=path, ptxas=old.ptxas)
    changes = [line for change in compare(old, new) for line in change.lines()]
    return (f"both texts assemble ({old.ptxas.name})", *changes)


def _as_internal(task: Task) -> FileResult:
    """The internal error in flight, as the result of this file."""
    import os
    import sys
    import traceback

    from ptxfence.batch.examine import DEBUG

    if os.environ.get(DEBUG):
        traceback.print_exc(file=sys.stderr)
    error = sys.exc_info()[1]
    message = f"internal error of ptxfence: {type(error).__name__}: {error}"
    return failure(task.path, task.sha256, "internal", message)
