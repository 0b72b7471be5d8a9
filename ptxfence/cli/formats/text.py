"""Text for people: what is wrong, where, how it comes about, what to do."""

from __future__ import annotations

import re

from ptxfence.analysis.report import Finding, KernelReport, Place, Severity, Verdict
from ptxfence.analysis.rules.remedies import remedy
from ptxfence.cli.formats.run import Run
from ptxfence.cli.formats.segments import Line, clauses, plain
from ptxfence.cli.formats.sources import source_line
from ptxfence.triage.result import FileResult
from ptxfence.triage.summary import Summary

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
_VERDICTS = {Verdict.HAZARD: "bold red", Verdict.PROVEN: "green", Verdict.UNDECIDED: "bold yellow"}
_FEW_FILES = 10  # up to so many, every kernel's verdict is listed
_OPCODE = re.compile(r"(@!?\S+\s+)?[^\s;]+")
_WIDTH = 110  # characters of a PTX line that are shown
_MAX_STEPS = 14
_MAX_OTHERS = 3


def render(run: Run) -> str:
    return plain(lines_of(run))


def lines_of(run: Run) -> list[Line]:
    """The report as styled lines."""
    lines: list[Line] = []
    for result in run.results:
        lines.extend(_file(result, listed=len(run.results) <= _FEW_FILES))
    lines.extend([("note: ", "bold cyan"), (note, "")] for note in _notes(run))
    lines.append(_summary(run.summary))
    return lines


def _notes(run: Run) -> list[str]:
    """Remarks on where the files come from, each once."""
    return list(dict.fromkeys(note for result in run.results for note in result.notes))


def _file(result: FileResult, *, listed: bool) -> list[Line]:
    lines: list[Line] = []
    for error in result.errors:
        lines.append([(f"{result.path}:{error.line}:{error.column}: ", "bold"), (f"{error.kind} error: ", "bold red")])
        lines[-1].append((error.message, ""))
        lines.extend([("    " + row, "dim")] for row in error.picture.splitlines())
    for finding in result.active:
        lines.extend(_finding(finding, result))
    for note in result.unused:
        about = note.problem or f"ignore[{', '.join(sorted(note.rules))}] silences nothing here"
        lines.append([(f"{result.path}:{note.line}: ", "bold"), (f"unused suppression: {about}", "yellow")])
    for kernel in result.kernels:
        if listed or kernel.verdict is not Verdict.PROVEN:
            lines.extend(_kernel(kernel, result))
    return lines


def _kernel(kernel: KernelReport, result: FileResult) -> list[Line]:
    head: Line = [(f"{result.path}:{kernel.line}: ", "bold"), (f"kernel {kernel.name}: ", "")]
    lines: list[Line] = [[*head, (kernel.verdict.value, _VERDICTS[kernel.verdict])]]
    if kernel.verdict is Verdict.UNDECIDED:
        lines.extend([("    because ", "dim"), (reason, "")] for reason in kernel.reasons)
    lines.extend([("    assuming ", "dim"), (text, "dim")] for text in kernel.assumptions)
    return lines


def _finding(finding: Finding, result: FileResult) -> list[Line]:
    style = _STYLES[finding.severity]
    at = finding.second or finding.first
    lines: list[Line] = [
        [
            (f"{result.path}:{at.line}:{at.column}: ", "bold"),
            (f"{finding.severity.name.lower()}[{finding.rule}] ", style),
            (finding.name, "bold"),
            (f" in kernel {finding.kernel}", ""),
            (_tags(finding), "dim"),
        ],
        *([(f"    {clause}", "")] for clause in clauses(finding)),
    ]
    if finding.second is None:
        lines.extend(_place("", finding.first, result, style))
    else:
        lines.extend(_place("first: ", finding.first, result, style))
        lines.extend(_others(finding.others))
        lines.extend(_place("then: ", finding.second, result, style))
    lines.extend(_path(finding))
    lines.extend(_advice(finding, result))
    lines.append([])
    return lines


def _tags(finding: Finding) -> str:
    cause = f"; cause {finding.cause.value}" if finding.cause else ""
    return f" ({finding.confidence.value}{cause}; id {finding.id})"


def _place(label: str, place: Place, result: FileResult, style: str) -> list[Line]:
    margin = f"{place.line:>8} | "
    shown, column, width = _window(result.line_text(place.line) or place.text, place)
    lines: list[Line] = [
        [(margin, "blue"), (shown, "")],
        [(" " * 9 + "| ", "blue"), (" " * column + "^" * width, style), (_about(label, place), "dim")],
    ]
    if place.source is not None:
        code = source_line(place.source, result.path)
        where = f"{place.source.file}:{place.source.line}:{place.source.column}"
        lines.append([(" " * 9 + "| ", "blue"), (f"at {where}", "magenta"), (f"  {code}" if code else "", "")])
    return lines


def _others(others: tuple[Place, ...]) -> list[Line]:
    shown = others if len(others) <= _MAX_OTHERS + 1 else others[:_MAX_OTHERS]
    lines: list[Line] = [
        [("     also ", "dim"), (f"line {place.line}: {_short(place.text)} {place.bytes}", "dim")] for place in shown
    ]
    if len(shown) < len(others):
        lines.append([(f"     and {len(others) - len(shown)} more like it", "dim")])
    return lines


def _about(label: str, place: Place) -> str:
    text = f"{label}{place.bytes}".rstrip(" :")
    return f" {text}" if text else ""


def _window(text: str, place: Place) -> tuple[str, int, int]:
    """A cut of the line around the access, the column of the caret in it and the number of carets."""
    start = max(place.column - 1, 0)
    indent = len(text) - len(text.lstrip())
    cut = min(indent, start) if start - min(indent, start) < _WIDTH // 2 else start - _WIDTH // 4
    shown = text.replace("\t", " ")[cut : cut + _WIDTH].rstrip()
    column = start - cut
    marked = _OPCODE.match(shown, column)
    width = len(marked[0]) if marked else 1
    return shown + ("..." if len(text) > cut + _WIDTH else ""), column, max(1, width)


def _path(finding: Finding) -> list[Line]:
    steps = finding.path
    if not steps:
        return []
    lines: list[Line] = [[("    how it comes about:", "dim")]]
    left_out = len(steps) - _MAX_STEPS
    for index, step in enumerate(steps):
        if left_out > 0 and _MAX_STEPS // 2 <= index < _MAX_STEPS // 2 + left_out:
            if index == _MAX_STEPS // 2:
                lines.append([(f"{'...':>8}   {left_out} more steps", "dim")])
            continue
        lines.append([(f"{step.line:>8}   ", "blue"), (step.what, "")])
    return lines


def _advice(finding: Finding, result: FileResult) -> list[Line]:
    lines: list[Line] = []
    for edit in finding.fix or ():
        lines.append([("    insert before line ", "green"), (f"{edit.line}: ", "green"), (edit.insert, "bold green")])
    advice = remedy(result.producer, finding, result.producer_version)
    if advice:
        lines.append([("    in the source: ", "green"), (advice, "")])
    lines.append([(f"    more: ptxfence explain {finding.rule}", "dim")])
    return lines


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


def _summary(summary: Summary) -> Line:
    parts = [
        _count(summary.errors, "error"),
        _count(summary.warnings, "warning"),
        _count(summary.notes, "note"),
    ]
    text = f"{_count(summary.kernels, 'kernel')} in {_count(summary.files, 'file')}: {', '.join(parts)}"
    extras = [
        (summary.undecided, "undecided"),
        (summary.suppressed, "suppressed"),
        (summary.duplicates, "duplicate" if summary.duplicates == 1 else "duplicates"),
    ]
    text += "".join(f", {number} {word}" for number, word in extras if number)
    if summary.failed_files:
        text += f", {_count(summary.failed_files, 'file')} could not be checked"
    style = "bold red" if summary.errors or summary.failed_files else "bold"
    return [(f"{text} ({summary.seconds:.2f} s)", style)]


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
