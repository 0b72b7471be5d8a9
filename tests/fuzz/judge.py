"""What one hostile input must not do."""

from __future__ import annotations

import time
import traceback

import ptxfence
from ptxfence.analysis.report import Report
from ptxfence.errors import PtxFenceError
from tests.litmus.rows import ROWS
from tests.oracle.generate import generate

LIMIT = 10.0  # seconds an input of a few kilobytes may take on a busy machine


def kernels() -> list[str]:
    """Texts to start from: litmus rows and generated kernels."""
    return [row.text for row in ROWS] + [generate(seed).text() for seed in range(40)]


def _outcome(text: str) -> tuple[object, ...]:
    """Verdict and findings, or the refusal."""
    try:
        report: Report = ptxfence.check(text)
    except PtxFenceError as error:
        return type(error).__name__, str(error)
    found = tuple((f.rule, f.cause, f.first.line, f.second and f.second.line, f.id) for f in report.findings)
    return report.verdict, found


def complaint(text: str, repeat: bool) -> str:
    """What is wrong with the tool's answer to `text`; empty if nothing. `repeat` asks twice."""
    begin = time.perf_counter()
    try:
        first = _outcome(text)
        if repeat and _outcome(text) != first:
            return "two runs differ"
    except Exception:  # whatever escapes is what we look for
        return traceback.format_exc(limit=-4)
    seconds = time.perf_counter() - begin
    return f"{seconds:.1f} s" if seconds > LIMIT else ""
