"""The outcome of checking one file, which every output format is a view of."""

from __future__ import annotations

from dataclasses import dataclass

from ptxfence.analysis.report import Finding, KernelReport, Place, Verdict


@dataclass(frozen=True, slots=True)
class FileError:
    """Why a file could not be checked. `line` and `column` count from 1; `picture` is the line with a caret or empty.

    `kind` is `syntax`, `io`, `unsupported` or `internal`.
    """

    line: int
    column: int
    message: str
    kind: str
    picture: str = ""


@dataclass(frozen=True, slots=True)
class IgnoreComment:
    """`// ptxfence: ignore[PF103] reason` on line `line`; it silences findings on line `covers`.

    `problem` says what is wrong with a comment that cannot be understood.
    """

    line: int
    covers: int
    rules: frozenset[str]
    reason: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class FileResult:
    """What was found in one file.

    `lines` holds the text of every line that a finding speaks of, by line number from 1. `unused` are the ignore
    comments that silenced nothing. `producer` is a name of `ptxfence.analysis.rules.remedies`.
    """

    path: str
    sha256: str
    ptx_version: str = ""
    target: str = ""
    errors: tuple[FileError, ...] = ()
    kernels: tuple[KernelReport, ...] = ()
    findings: tuple[Finding, ...] = ()
    lines: tuple[tuple[int, str], ...] = ()
    comments: tuple[IgnoreComment, ...] = ()
    unused: tuple[IgnoreComment, ...] = ()
    producer: str = ""
    producer_version: str | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the file could not be checked."""
        return bool(self.errors)

    @property
    def active(self) -> tuple[Finding, ...]:
        """The findings that nothing suppresses."""
        return tuple(finding for finding in self.findings if finding.suppressed is None)

    @property
    def undecided(self) -> int:
        """The number of undecided kernels."""
        return sum(kernel.verdict is Verdict.UNDECIDED for kernel in self.kernels)

    def line_text(self, number: int) -> str:
        """The text of a line that a finding speaks of, empty for any other."""
        return next((text for line, text in self.lines if line == number), "")


def places(finding: Finding) -> tuple[Place, ...]:
    """The accesses of a finding in the order of the contract: first, its companions, second."""
    last = () if finding.second is None else (finding.second,)
    return (finding.first, *finding.others, *last)


def failure(path: str, sha256: str, kind: str, message: str, line: int = 1, column: int = 1) -> FileResult:
    """The result for a file that could not be checked at all."""
    return FileResult(path, sha256, errors=(FileError(line, column, message, kind),))
