"""GitHub workflow commands: one annotation a finding, on the kernel's own line where that lies in the repository."""

from __future__ import annotations

from ptxfence.analysis.report import Finding, Severity
from ptxfence.cli.formats.run import Run
from ptxfence.cli.formats.sources import find_source, relative
from ptxfence.triage.result import FileResult

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(run: Run) -> str:
    lines: list[str] = []
    for result in run.results:
        for error in result.errors:
            lines.append(_command("error", result.path, error.line, error.column, error.kind, error.message))
        lines.extend(_finding(finding, result, run) for finding in result.active)
        for note in result.unused:
            about = note.problem or "this ignore comment silences nothing"
            lines.append(_command("notice", result.path, note.line, 1, "unused suppression", about))
    lines.append(_summary(run))
    return "\n".join(lines) + "\n"


def _finding(finding: Finding, result: FileResult, run: Run) -> str:
    place = finding.second or finding.first
    file, line, column = result.path, place.line, place.column
    message = f"{finding.message} (kernel {finding.kernel}, {result.path}:{place.line})"
    if place.source is not None:
        found = find_source(place.source.file, result.path)
        inside = relative(found, run.folder) if found else None
        if inside is not None:
            file, line, column = inside, place.source.line, place.source.column
    title = f"{finding.rule} {finding.name}"
    return _command(_COMMANDS[finding.severity], file, line, column, title, message)


def _command(kind: str, file: str, line: int, column: int, title: str, message: str) -> str:
    fields = f"file={_property(file)},line={line},col={max(column, 1)},title={_property(title)}"
    return f"::{kind} {fields}::{_data(message)}"


def _summary(run: Run) -> str:
    total = run.summary
    return (
        f"ptxfence: {total.files} files, {total.kernels} kernels: {total.errors} errors, {total.warnings} warnings, "
        f"{total.notes} notes, {total.undecided} undecided, {total.failed_files} unreadable"
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
