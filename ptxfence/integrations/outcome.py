"""What the watching parts share: the modes, what was found in one text, and the function that finds it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ptxfence.errors import ConfigError

if TYPE_CHECKING:
    from ptxfence.analysis.report import Finding, Place, Report
    from ptxfence.config import Settings

MODE_VARIABLE = "PTXFENCE"
SETTINGS_VARIABLE = "PTXFENCE_SETTINGS"
"""Path of a `ptxfence.toml` or `pyproject.toml`; without it the defaults hold, whatever lies in the working folder."""


class Mode(StrEnum):
    """`check` looks on, `fix` patches, `error` refuses a kernel with a finding at or above `fail-on`."""

    CHECK = "check"
    FIX = "fix"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Notice:
    """One finding in the few words that a running program's user needs. `source` is `file:line` or empty."""

    rule: str
    name: str
    severity: str
    kernel: str
    message: str
    line: int
    text: str
    source: str = ""
    repaired: bool = False

    def sentence(self) -> str:
        """The finding on one line; the place is the source line where the producer wrote one."""
        place = self.source or f"PTX line {self.line}"
        repaired = " (repaired)" if self.repaired else ""
        return f"{place}: {self.severity}: {self.rule} {self.name} in {self.kernel}: {self.message}{repaired}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one text. `failing` are the notices at or above `fail-on`; `edits` counts inserted fences."""

    text: str
    edits: int = 0
    kernels: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
    failing: tuple[Notice, ...] = ()


Examine = Callable[[str, str, Mode, float], Outcome]
"""Text, a name for messages, the mode and the seconds that one kernel may take."""


def mode_of(word: str) -> Mode:
    """The mode that a user named. Raises ConfigError."""
    try:
        return Mode(word.strip().lower())
    except ValueError:
        raise ConfigError(f"unknown mode {word!r}; known: {', '.join(Mode)}") from None


@lru_cache(maxsize=8)
def settings_at(path: str | None) -> Settings:
    """The settings of a file, or the defaults. Raises ConfigError."""
    from pathlib import Path

    from ptxfence.config import Settings, load

    return load(Path(path)) if path else Settings()


def current_settings() -> Settings:
    """The settings that the environment names. Raises ConfigError."""
    return settings_at(os.environ.get(SETTINGS_VARIABLE))


@lru_cache(maxsize=8)
def _key(mode: Mode, path: str | None) -> str:
    from hashlib import sha256

    from ptxfence import __version__
    from ptxfence.batch.cache import package_stamp

    digest = sha256(f"{package_stamp()}:{settings_at(path)!r}".encode()).hexdigest()
    return f"ptxfence-{__version__}-{mode}-{digest[:16]}"


def cache_key(mode: Mode, environment: Mapping[str, str] = os.environ) -> str:
    """Names everything of ours that a patched kernel depends on: version, code, mode and the settings named there.

    Raises ConfigError for settings that make no sense.
    """
    return _key(mode, environment.get(SETTINGS_VARIABLE))


def examine(text: str, filename: str, mode: Mode, seconds: float) -> Outcome:
    """Checks a text, or patches it in `fix` mode. Raises PtxFenceError for text that cannot be read."""
    from dataclasses import replace

    import ptxfence

    settings = current_settings()
    if settings.timeout is None:
        settings = replace(settings, timeout=seconds)
    if mode is not Mode.FIX:
        report = ptxfence.check(text, filename, settings)
        return _outcome(text, report, settings, 0, None)
    patch = ptxfence.fix(text, filename, settings)
    return _outcome(patch.text, patch.before, settings, sum(bool(edit.insert) for edit in patch.edits), patch.after)


def _outcome(text: str, report: Report, settings: Settings, edits: int, after: Report | None) -> Outcome:
    from ptxfence.analysis.report import Severity, Verdict

    left = Counter(map(_likeness, after.findings if after is not None else report.findings))
    notices: list[Notice] = []
    failing: list[Notice] = []
    for finding in report.findings:
        if finding.suppressed is not None or finding.severity is Severity.OFF:
            continue
        left[_likeness(finding)] -= 1
        notice = _notice(finding, repaired=left[_likeness(finding)] < 0)
        notices.append(notice)
        if settings.fail_on is not None and finding.severity >= settings.fail_on:
            failing.append(notice)
    undecided = tuple(kernel.name for kernel in report.kernels if kernel.verdict is Verdict.UNDECIDED)
    kernels = tuple(kernel.name for kernel in report.kernels)
    return Outcome(text, edits, kernels, undecided, tuple(notices), tuple(failing))


def _likeness(finding: Finding) -> tuple[str, str, str]:
    """What a finding of the patched text has in common with one of the original; lines and ids differ."""
    return finding.rule, finding.kernel, (finding.second or finding.first).text


def _notice(finding: Finding, repaired: bool) -> Notice:
    place = finding.second or finding.first
    return Notice(
        rule=finding.rule,
        name=finding.name,
        severity=finding.severity.name.lower(),
        kernel=finding.kernel,
        message=finding.message,
        line=place.line,
        text=place.text,
        source=_source(finding.second) or _source(finding.first),
        repaired=repaired,
    )


def _source(place: Place | None) -> str:
    source = None if place is None else place.source
    return "" if source is None else f"{source.file}:{source.line}"


def pack(outcome: Outcome) -> dict[str, Any]:
    """The outcome as plain data, without the text and without what depends on `fail-on`."""
    data = asdict(outcome)
    del data["text"], data["failing"]
    return data


def unpack(text: str, data: Mapping[str, Any]) -> Outcome:
    """The reverse of `pack`. Raises KeyError or TypeError for data of another version."""
    return Outcome(
        text=text,
        edits=data["edits"],
        kernels=tuple(data["kernels"]),
        undecided=tuple(data["undecided"]),
        notices=tuple(Notice(**notice) for notice in data["notices"]),
    )
