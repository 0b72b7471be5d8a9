"""Hand-made results, for tests of what is done with findings rather than of how they are found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
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
from ptxfence.cli.formats.run import Run
from ptxfence.config import Settings
from ptxfence.grammar.model import SourceLocation
from ptxfence.triage.identity import identify
from ptxfence.triage.result import FileError, FileResult
from ptxfence.triage.summary import summarise

VARIABLES = ("tile", "full")
TEXT = """\
.version 8.7
.target sm_90a
.visible .entry k()
{
    st.shared.b32 [%r3], %r0;
    bar.sync 0;
    @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 512;
}
"""


def place(line: int, text: str, *, source: SourceLocation | None = None, where: str = "tile[0..512)") -> Place:
    return Place(line, line, 5, text, source, where)


def finding(**changes: Any) -> Finding:
    """A PF101 error from line 5 to line 7 of TEXT, with changes."""
    base = Finding(
        rule="PF101",
        name="missing-fence-raw",
        severity=Severity.ERROR,
        confidence=Confidence.CERTAIN,
        kernel="k",
        cause=Cause.NO_FENCE,
        message="bytes written on line 5 are read on line 7 with no fence between",
        first=place(5, "st.shared.b32 [%r3], %r0;", source=SourceLocation("k.py", 2, 9)),
        second=place(
            7,
            "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 512;",
            source=SourceLocation("k.py", 3, 5),
        ),
        path=(Step(5, "generic write"), Step(6, "bar.sync 0"), Step(7, "asynchronous read")),
        fix=(Edit(6, "fence.proxy.async.shared::cta;"),),
    )
    return replace(base, **changes)


def kernel(**changes: Any) -> KernelReport:
    base = KernelReport("k", 3, Verdict.HAZARD, counts=Counts(1, 1, 0, 3), seconds=0.25)
    return replace(base, **changes)


def result(*findings: Finding, path: str = "k.ptx", **changes: Any) -> FileResult:
    """A result of TEXT with these findings, identified."""
    base = FileResult(
        path=path,
        sha256="0" * 64,
        ptx_version="8.7",
        target="sm_90a",
        kernels=(kernel(verdict=Verdict.HAZARD if findings else Verdict.PROVEN),),
        findings=identify(findings, VARIABLES),
        lines=tuple(enumerate(TEXT.splitlines(), start=1)),
    )
    return replace(base, **changes)


def broken(path: str = "bad.ptx", kind: str = "syntax") -> FileResult:
    error = FileError(3, 7, "expected ';' & <nothing>", kind, "add.u32 %r1\n       ^")
    return FileResult(path, "1" * 64, errors=(error,))


def run_of(*results: FileResult, folder: Path = Path(), **settings: Any) -> Run:
    by_path = {item.path: Settings(**settings) for item in results}
    return Run(results, summarise(results, 0.5), by_path, folder)
