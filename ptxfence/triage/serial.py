"""File results as JSON: what `--format json` prints (contract 4), and all of it for the result cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptxfence.analysis.report import (
    Cause,
    Confidence,
    Counts,
    Edit,
    Finding,
    KernelReport,
    Place,
    Severity,
    Step,
    Verdict,
)
from ptxfence.analysis.rules.remedies import remedy
from ptxfence.grammar.model import SourceLocation
from ptxfence.triage.result import FileError, FileResult, IgnoreComment

MAX_ERRORS = 20


def to_json(result: FileResult) -> dict[str, Any]:
    """The file object of contract 4."""
    errors = [
        {"line": item.line, "column": item.column, "message": item.message, "kind": item.kind}
        for item in result.errors[:MAX_ERRORS]
    ]
    return {
        "path": result.path,
        "sha256": result.sha256,
        "ptx_version": result.ptx_version,
        "target": result.target,
        "producer": result.producer,
        "error": errors[0] if errors else None,
        "errors": errors,
        "kernels": [_kernel(kernel) for kernel in result.kernels],
        "findings": [finding_json(finding, result) for finding in result.findings],
        "unused_suppressions": [
            {"line": note.line, "rules": sorted(note.rules), "problem": note.problem} for note in result.unused
        ],
    }


def finding_json(finding: Finding, result: FileResult) -> dict[str, Any]:
    """The finding object of contract 4."""
    fix = None
    if finding.fix is not None:
        fix = {"edits": [{"line": edit.line, "insert": edit.insert} for edit in finding.fix]}
    return {
        "id": finding.id,
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity.name.lower(),
        "confidence": finding.confidence.value,
        "kernel": finding.kernel,
        "cause": finding.cause.value if finding.cause else None,
        "message": finding.message,
        "first": _place(finding.first),
        "second": _place(finding.second) if finding.second else None,
        "others": [_place(place) for place in finding.others],
        "path": [{"line": step.line, "what": step.what} for step in finding.path],
        "fix": fix,
        "remedy": remedy(result.producer, finding, result.producer_version),
        "suppressed": finding.suppressed,
    }


def _kernel(kernel: KernelReport) -> dict[str, Any]:
    counts = kernel.counts
    return {
        "name": kernel.name,
        "line": kernel.line,
        "verdict": kernel.verdict.value,
        "reasons": list(kernel.reasons),
        "assumptions": list(kernel.assumptions),
        "counts": {
            "generic": counts.generic,
            "async": counts.asynchronous,
            "fences": counts.fences,
            "instructions": counts.instructions,
        },
        "seconds": round(kernel.seconds, 6),
    }


def _place(place: Place) -> dict[str, Any]:
    source = place.source
    where = {"file": source.file, "line": source.line, "column": source.column} if source else None
    return {"line": place.line, "column": place.column, "text": place.text, "source": where, "bytes": place.bytes}


def pack(result: FileResult) -> dict[str, Any]:
    """All of a raw result that does not depend on where the bytes were found."""
    data = to_json(result)
    data["lines"] = list(result.lines)
    data["pictures"] = [item.picture for item in result.errors]
    data["comments"] = [
        [note.line, note.covers, sorted(note.rules), note.reason, note.problem] for note in result.comments
    ]
    for packed, finding in zip(data["findings"], result.findings, strict=True):
        everything = (finding.first, finding.second, *finding.others)
        packed["instructions"] = [place.instruction for place in everything if place is not None]
        packed["edits"] = [[edit.line, edit.insert, list(edit.rules), edit.remove] for edit in finding.fix or ()]
        packed["anchor"], packed["fence"] = finding.anchor, finding.fence
    return data


def unpack(data: Mapping[str, Any]) -> FileResult:
    """The result that `pack` was given. Raises KeyError, TypeError or ValueError on anything else."""
    errors = zip(data["errors"], data["pictures"], strict=True)
    return FileResult(
        path=data["path"],
        sha256=data["sha256"],
        ptx_version=data["ptx_version"],
        target=data["target"],
        producer=data["producer"],
        errors=tuple(FileError(e["line"], e["column"], e["message"], e["kind"], picture) for e, picture in errors),
        kernels=tuple(_read_kernel(kernel) for kernel in data["kernels"]),
        findings=tuple(_read_finding(finding) for finding in data["findings"]),
        lines=tuple((line, text) for line, text in data["lines"]),
        comments=tuple(
            IgnoreComment(line, covers, frozenset(rules), reason, problem)
            for line, covers, rules, reason, problem in data["comments"]
        ),
    )


def _read_kernel(data: Mapping[str, Any]) -> KernelReport:
    counts = data["counts"]
    return KernelReport(
        data["name"],
        data["line"],
        Verdict(data["verdict"]),
        tuple(data["reasons"]),
        tuple(data["assumptions"]),
        Counts(counts["generic"], counts["async"], counts["fences"], counts["instructions"]),
        data["seconds"],
    )


def _read_finding(data: Mapping[str, Any]) -> Finding:
    indices = iter(data["instructions"])
    first = _read_place(data["first"], next(indices))
    second = _read_place(data["second"], next(indices)) if data["second"] else None
    fix = data["fix"]
    return Finding(
        rule=data["rule"],
        name=data["name"],
        severity=Severity[data["severity"].upper()],
        confidence=Confidence(data["confidence"]),
        kernel=data["kernel"],
        cause=Cause(data["cause"]) if data["cause"] else None,
        message=data["message"],
        first=first,
        second=second,
        path=tuple(Step(step["line"], step["what"]) for step in data["path"]),
        fix=tuple(Edit(line, text, tuple(rules), gone) for line, text, rules, gone in data["edits"]) if fix else None,
        others=tuple(_read_place(place, index) for place, index in zip(data["others"], indices, strict=True)),
        anchor=data["anchor"],
        fence=data["fence"],
        id=data["id"],
        suppressed=data["suppressed"],
    )


def _read_place(data: Mapping[str, Any], instruction: int) -> Place:
    source = data["source"]
    where = SourceLocation(source["file"], source["line"], source["column"]) if source else None
    return Place(instruction, data["line"], data["column"], data["text"], where, data["bytes"])
