"""Applies settings and ignore comments to raw findings; a baseline comes after it (`Baseline.apply`).

Verdicts are about the kernel, not about the settings: a severity that is raised can make a kernel a `hazard`, but
nothing that silences a finding makes one `proven`. Strict settings take no proof that rests on an assumption.
"""

from __future__ import annotations

from dataclasses import replace

from ptxfence.analysis.report import Finding, KernelReport, Severity, Verdict
from ptxfence.analysis.rules import rule
from ptxfence.config import Settings
from ptxfence.triage.comments import silencer
from ptxfence.triage.result import FileResult, IgnoreComment

_HAZARD_RULES = "PF1"


def settle(result: FileResult, settings: Settings) -> FileResult:
    """The result as its reader is to see it: final severities, suppressions, unused ignore comments."""
    findings: list[Finding] = []
    used: set[IgnoreComment] = set()
    for raw in result.findings:
        finding = _graded(raw, result.path, settings)
        if finding is None:
            continue
        comment = silencer(finding, result.comments)
        if comment is not None:
            used.add(comment)
        findings.append(replace(finding, suppressed=_suppression(finding, comment, result.path, settings)))
    unused = tuple(comment for comment in result.comments if comment not in used)
    kernels = tuple(_verdict(kernel, findings, settings) for kernel in result.kernels)
    return replace(result, findings=tuple(findings), kernels=kernels, unused=unused)


def _graded(finding: Finding, path: str, settings: Settings) -> Finding | None:
    """The finding with its final severity; None for one whose rule is off."""
    wanted = settings.severity.get(finding.rule)
    for override in settings.overrides:
        if finding.rule in override.severity and override.applies(path, finding.kernel):
            wanted = override.severity[finding.rule]
    level = finding.severity
    if level is Severity.OFF and (settings.strict or finding.rule in (settings.select or ())):
        level = rule(finding.rule).under_strict
    if wanted is not None and wanted is not Severity.OFF:
        level = wanted
    return None if level is Severity.OFF else replace(finding, severity=level)


def _suppression(finding: Finding, comment: IgnoreComment | None, path: str, settings: Settings) -> str | None:
    if not _selected(finding, path, settings):
        return "config"
    return "comment" if comment is not None else None


def _selected(finding: Finding, path: str, settings: Settings) -> bool:
    if settings.select is not None and finding.rule not in settings.select:
        return False
    if finding.rule in settings.ignore or settings.severity.get(finding.rule) is Severity.OFF:
        return False
    return not any(
        override.applies(path, finding.kernel)
        and (finding.rule in override.ignore or override.severity.get(finding.rule) is Severity.OFF)
        for override in settings.overrides
    )


def _verdict(kernel: KernelReport, findings: list[Finding], settings: Settings) -> KernelReport:
    hazard = any(
        finding.kernel == kernel.name
        and finding.rule.startswith(_HAZARD_RULES)
        and finding.severity >= Severity.WARNING
        and finding.suppressed is None
        for finding in findings
    )
    if hazard:
        return replace(kernel, verdict=Verdict.HAZARD)
    if settings.strict and kernel.verdict is Verdict.PROVEN and kernel.assumptions:
        reasons = tuple(f"assumed, not proven: {text}" for text in kernel.assumptions)
        return replace(kernel, verdict=Verdict.UNDECIDED, reasons=reasons)
    return kernel
