"""JUnit XML: a suite for each file, a case for each kernel, a failure where a finding fails the run."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from ptxfence.analysis.report import Finding, KernelReport, Verdict
from ptxfence.cli.formats.run import Run
from ptxfence.triage.result import FileResult

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(run: Run) -> str:
    root = ElementTree.Element("testsuites", name="ptxfence", time=f"{run.summary.seconds:.3f}")
    totals = [0, 0, 0]
    for result in run.results:
        suite = _suite(result, run)
        root.append(suite)
        for index, name in enumerate(("tests", "failures", "errors")):
            totals[index] += int(suite.get(name, "0"))
    for name, value in zip(("tests", "failures", "errors"), totals, strict=True):
        root.set(name, str(value))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(result: FileResult, run: Run) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=_clean(result.path), time=f"{result.seconds:.3f}")
    for kernel in result.kernels:
        suite.append(_case(kernel, result, run))
    for error in result.errors:
        case = ElementTree.SubElement(suite, "testcase", name=f"{error.kind} error", classname=_clean(result.path))
        where = f"{result.path}:{error.line}:{error.column}"
        ElementTree.SubElement(case, "error", type=error.kind, message=_clean(error.message)).text = _clean(where)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure[1]"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))
    return suite


def _case(kernel: KernelReport, result: FileResult, run: Run) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", name=_clean(kernel.name), classname=_clean(result.path), time=f"{kernel.seconds:.3f}"
    )
    limit = run.fail_on(result.path)
    findings = [finding for finding in result.active if finding.kernel == kernel.name]
    failing = [finding for finding in findings if limit is not None and finding.severity >= limit]
    if failing:
        summary = f"{failing[0].rule} {failing[0].name}"
        summary += f" and {len(failing) - 1} more" if len(failing) > 1 else ""
        failure = ElementTree.SubElement(case, "failure", type=failing[0].rule, message=_clean(summary))
        failure.text = _clean("\n".join(_line(finding, result) for finding in failing))
    elif kernel.verdict is Verdict.UNDECIDED and run.settings[result.path].strict:
        reasons = _clean("\n".join(kernel.reasons))
        ElementTree.SubElement(case, "failure", type="undecided", message="undecided").text = reasons
    others = [finding for finding in findings if finding not in failing]
    output = [f"verdict: {kernel.verdict.value}", *(_line(finding, result) for finding in others)]
    ElementTree.SubElement(case, "system-out").text = _clean("\n".join(output))
    return case


def _line(finding: Finding, result: FileResult) -> str:
    place = finding.second or finding.first
    text = f"{result.path}:{place.line}: {finding.severity.name.lower()}[{finding.rule}] {finding.message}"
    if place.source is not None:
        text += f" ({place.source.file}:{place.source.line})"
    return text


def _clean(text: str) -> str:
    return _NOT_XML.sub("?", text)
