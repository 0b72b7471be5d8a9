"""SARIF 2.1.0, for code scanning.

A result stands on the kernel's own source line where `.loc` names one below the working folder, else on the PTX line;
the other one is a related location. The witness path is a code flow, the patch a fix, the stable id a fingerprint.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ptxfence import __version__
from ptxfence.analysis.report import Finding, Place, Severity
from ptxfence.analysis.rules import NAMES, all_rules
from ptxfence.analysis.rules.base import Rule
from ptxfence.analysis.rules.remedies import remedy
from ptxfence.cli.formats.run import Run
from ptxfence.cli.formats.sources import find_source, relative
from ptxfence.cli.pages import page
from ptxfence.triage.result import FileResult, places

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.OFF: "none", Severity.NOTE: "note", Severity.WARNING: "warning", Severity.ERROR: "error"}
_INDEX = {identifier: number for number, identifier in enumerate(NAMES)}
_SUPPRESSION = {"comment": "inSource", "baseline": "external", "config": "external"}


def render(run: Run) -> str:
    failed = [_notification(result, run) for result in run.results if result.failed]
    invocation: dict[str, Any] = {"executionSuccessful": not failed}
    if failed:
        invocation["toolExecutionNotifications"] = [note for notes in failed for note in notes]
    driver = {
        "name": "ptxfence",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(rule) for rule in all_rules()],
    }
    sarif_run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "artifacts": [_artifact(result, run) for result in run.results],
        "results": [_result(finding, result, run) for result in run.results for finding in result.findings],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [sarif_run]}) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.why.strip()},
        "help": {"text": rule.how_to_fix.strip(), "markdown": page(rule)},
        "defaultConfiguration": {"level": _LEVELS[rule.severity], "enabled": rule.severity is not Severity.OFF},
        "properties": {"tags": ["correctness" if rule.id.startswith("PF1") else "performance"]},
    }


def _artifact(result: FileResult, run: Run) -> dict[str, Any]:
    artifact: dict[str, Any] = {"location": _uri(Path(result.path), run)}
    if result.sha256:
        artifact["hashes"] = {"sha-256": result.sha256}
    return artifact


def _result(finding: Finding, result: FileResult, run: Run) -> dict[str, Any]:
    place = finding.second or finding.first
    ptx = _ptx_location(place, result, run)
    source = _source_location(place, result, run)
    related = [_ptx_location(other, result, run) for other in places(finding) if other is not place]
    if source is not None:
        related.insert(0, ptx)
    advice = remedy(result.producer, finding, result.producer_version)
    data: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": _INDEX[finding.rule],
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message} (kernel {finding.kernel})" + (f" {advice}." if advice else "")},
        "locations": [source or ptx],
        "partialFingerprints": {"ptxfence/v1": finding.id},
        "properties": {
            "kernel": finding.kernel,
            "confidence": finding.confidence.value,
            "cause": finding.cause.value if finding.cause else None,
        },
    }
    if related:
        data["relatedLocations"] = [{"id": number, **location} for number, location in enumerate(related)]
    if finding.path:
        data["codeFlows"] = [{"threadFlows": [{"locations": _flow(finding, result, run)}]}]
    if finding.fix:
        data["fixes"] = [_fix(finding, result, run)]
    if finding.suppressed:
        data["suppressions"] = [{"kind": _SUPPRESSION[finding.suppressed], "justification": finding.suppressed}]
    return data


def _flow(finding: Finding, result: FileResult, run: Run) -> list[dict[str, Any]]:
    return [
        {
            "location": {
                "physicalLocation": {
                    "artifactLocation": _uri(Path(result.path), run),
                    "region": {"startLine": max(step.line, 1)},
                },
                "message": {"text": step.what},
            }
        }
        for step in finding.path
    ]


def _fix(finding: Finding, result: FileResult, run: Run) -> dict[str, Any]:
    replacements = [
        {
            "deletedRegion": {
                "startLine": edit.line,
                "startColumn": 1,
                "endLine": edit.line,
                "endColumn": 1,
            },
            "insertedContent": {"text": edit.insert + "\n"},
        }
        for edit in finding.fix or ()
    ]
    return {
        "description": {"text": "Insert the missing proxy fence"},
        "artifactChanges": [{"artifactLocation": _uri(Path(result.path), run), "replacements": replacements}],
    }


def _ptx_location(place: Place, result: FileResult, run: Run) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": place.line, "startColumn": max(place.column, 1)}
    text = result.line_text(place.line) or place.text
    if text:
        region["snippet"] = {"text": text}
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": _uri(Path(result.path), run), "region": region}
    }
    if place.bytes:
        location["message"] = {"text": place.bytes}
    return location


def _source_location(place: Place, result: FileResult, run: Run) -> dict[str, Any] | None:
    source = place.source
    found = find_source(source.file, result.path) if source is not None else None
    if source is None or found is None or relative(found, run.folder) is None:
        return None
    region = {"startLine": max(source.line, 1), "startColumn": max(source.column, 1)}
    return {"physicalLocation": {"artifactLocation": _uri(found, run), "region": region}}


def _notification(result: FileResult, run: Run) -> list[dict[str, Any]]:
    return [
        {
            "level": "error",
            "message": {"text": f"{error.kind} error: {error.message}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": _uri(Path(result.path), run),
                        "region": {"startLine": max(error.line, 1), "startColumn": max(error.column, 1)},
                    }
                }
            ],
        }
        for error in result.errors
    ]


def _uri(path: Path, run: Run) -> dict[str, str]:
    inside = relative(run.folder / path, run.folder)
    if inside is not None:
        return {"uri": quote(inside), "uriBaseId": "%SRCROOT%"}
    return {"uri": path.resolve().as_uri()}
