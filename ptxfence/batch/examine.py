"""Checks one text. Whatever goes wrong in it becomes an error of that file; nothing escapes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ptxfence.analysis.report import Report
from ptxfence.errors import PtxFenceError, PtxSyntaxError
from ptxfence.triage.result import FileError, FileResult, failure, places

if TYPE_CHECKING:
    from ptxfence.grammar import PtxFile

DEBUG = "PTXFENCE_DEBUG"


@dataclass(frozen=True, slots=True)
class Options:
    """What changes raw findings, and so is part of a cached result's key. `timeout` is in seconds per kernel."""

    kernel: str | None = None
    timeout: float | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """One text to check."""

    path: str
    text: str
    sha256: str
    options: Options = Options()
    producer_version: str | None = None
    notes: tuple[str, ...] = ()


def digest(text: str) -> str:
    """SHA-256 of the bytes that the text was read from."""
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def task_of(path: str, text: str, options: Options, metadata: Mapping[str, object] | None = None) -> Task:
    """A task for a text; `metadata` is what the compiler wrote beside it (Triton's json)."""
    version = (metadata or {}).get("triton_version")
    return Task(path, text, digest(text), options, version if isinstance(version, str) else None)


def examine(task: Task) -> FileResult:
    """Check one text. Never raises, except for KeyboardInterrupt and SystemExit."""
    started = time.perf_counter()
    try:
        result = _examine(task)
    except PtxFenceError as error:
        result = failure(task.path, task.sha256, error.kind, str(error))
    except Exception as error:
        if os.environ.get(DEBUG):
            import traceback

            traceback.print_exc(file=sys.stderr)
        about = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        result = failure(task.path, task.sha256, "internal", f"internal error of ptxfence: {about}")
    return adopt(replace(result, seconds=time.perf_counter() - started), task)


def adopt(result: FileResult, task: Task) -> FileResult:
    """The result of the same bytes as the result of this task's file."""
    return replace(
        result, path=task.path, sha256=task.sha256, producer_version=task.producer_version, notes=task.notes
    )


def raw_report(file: PtxFile, options: Options) -> Report:
    """The findings of a file with their stable ids, before any setting."""
    from ptxfence.analysis.check import analyse
    from ptxfence.triage.identity import identify

    report = analyse(file, kernel=options.kernel, timeout=options.timeout, strict=options.strict)
    names = {name for module in file.modules for name in module.variables}
    return replace(report, findings=identify(report.findings, names))


def _examine(task: Task) -> FileResult:
    from ptxfence.grammar import parse, validate

    file = parse(task.text, task.path)
    errors = tuple(file_error(error) for error in validate(file))
    if errors:
        version, target = (file.modules[0].version, file.modules[0].target) if file.modules else ("", "")
        return FileResult(task.path, task.sha256, ptx_version=version, target=target, errors=errors)
    return result_of(file, raw_report(file, task.options), task.sha256)


def result_of(file: PtxFile, report: Report, sha256: str) -> FileResult:
    """A report with what the formats need of the text beside it."""
    from ptxfence.analysis.rules.remedies import producer
    from ptxfence.triage.comments import find_comments

    findings = report.findings
    if any(finding.anchor is not None for finding in findings):
        from ptxfence.batch.propose import propose

        findings = propose(file, findings)
    numbers = {place.line for finding in report.findings for place in places(finding)}
    numbers.update(step.line for finding in report.findings for step in finding.path)
    return FileResult(
        path=file.filename,
        sha256=sha256,
        ptx_version=report.ptx_version,
        target=report.target,
        kernels=report.kernels,
        findings=findings,
        lines=tuple((number, file.line_text(number)) for number in sorted(numbers)),
        comments=find_comments(file.text),
        producer=producer(file.text),
    )


def file_error(error: PtxSyntaxError) -> FileError:
    """A syntax error as data."""
    return FileError(error.line, error.column, error.message, error.kind, error.picture())
