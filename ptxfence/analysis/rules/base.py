"""What every rule must say about itself. A rule with a gap does not import."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from ptxfence.analysis.report import Severity

_ID = re.compile(r"PF[1-3]\d\d")
_NAME = re.compile(r"[a-z]+(-[a-z]+)*")


@dataclass(frozen=True, slots=True)
class Rule:
    """The metadata of one rule, which `ptxfence explain` and the pages under `docs/rules` print.

    `severity` is the default, `strict_severity` the one under `--strict`. `bad` and `good` are PTX statements for the
    frame of `ptxfence.analysis.rules.example`, the first of which the rule fires on. `conditions` says when a finding
    has another severity than the default. Texts are Markdown, `sources` are citations.

    Raises ValueError where a text is missing or an id or name is malformed.
    """

    id: str
    name: str
    severity: Severity
    summary: str
    why: str
    bad: str
    good: str
    how_to_fix: str
    when_to_ignore: str
    sources: tuple[str, ...]
    strict_severity: Severity | None = None
    conditions: str = ""
    arch: str = "sm_90a"

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"{self.id!r} is no rule id")
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.id}: {self.name!r} is no rule name")
        if not self.sources or not all(source.strip() for source in self.sources):
            raise ValueError(f"{self.id}: sources are missing")
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, str) and not value.strip() and item.name != "conditions":
                raise ValueError(f"{self.id}: {item.name} is missing")

    @property
    def under_strict(self) -> Severity:
        """The severity under `--strict`."""
        return self.severity if self.strict_severity is None else self.strict_severity
