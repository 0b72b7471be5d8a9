"""Counts over all files, and the exit status that follows from them (contract 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ptxfence.analysis.report import Severity
from ptxfence.config import Settings
from ptxfence.triage.result import FileResult

CLEAN, FINDINGS, BROKEN, UNDECIDED = 0, 1, 2, 3
_WORST_FIRST = (BROKEN, FINDINGS, UNDECIDED, CLEAN)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run found, suppressed findings left out. `duplicates` are files whose bytes were seen before."""

    files: int = 0
    kernels: int = 0
    errors: int = 0
    warnings: int = 0
    notes: int = 0
    undecided: int = 0
    failed_files: int = 0
    suppressed: int = 0
    duplicates: int = 0
    seconds: float = 0.0

    def __add__(self, other: Summary) -> Summary:
        return Summary(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


def summarise(results: Iterable[FileResult], seconds: float, duplicates: int = 0) -> Summary:
    """The counts over the results; `seconds` is the wall time of the run."""
    files = kernels = undecided = failed = suppressed = 0
    levels: dict[Severity, int] = dict.fromkeys(Severity, 0)
    for result in results:
        files += 1
        kernels += len(result.kernels)
        undecided += result.undecided
        failed += result.failed
        suppressed += len(result.findings) - len(result.active)
        for finding in result.active:
            levels[finding.severity] += 1
    return Summary(
        files=files,
        kernels=kernels,
        errors=levels[Severity.ERROR],
        warnings=levels[Severity.WARNING],
        notes=levels[Severity.NOTE],
        undecided=undecided,
        failed_files=failed,
        suppressed=suppressed,
        duplicates=duplicates,
        seconds=seconds,
    )


def file_status(result: FileResult, settings: Settings) -> int:
    """The exit status that one file asks for."""
    if result.failed:
        return BROKEN
    limit = settings.fail_on
    if limit is not None and any(finding.severity >= limit for finding in result.active):
        return FINDINGS
    return UNDECIDED if settings.strict and result.undecided else CLEAN


def exit_status(results: Iterable[FileResult], settings: Mapping[str, Settings], *, allow_empty: bool) -> int:
    """The worst status of the files, 2 over 1 over 3; 2 also where no kernel was found. `settings` are by path."""
    statuses = {CLEAN}
    kernels = 0
    for result in results:
        kernels += len(result.kernels)
        statuses.add(file_status(result, settings[result.path]))
    if not kernels and not allow_empty:
        statuses.add(BROKEN)
    return next(status for status in _WORST_FIRST if status in statuses)
