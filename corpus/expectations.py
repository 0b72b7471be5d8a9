"""Reads the expectation comments of a corpus file (grammar: docs/corpus.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_EXPECT = re.compile(r"// expect: (.+)$")
_ALLOW = re.compile(r"^// allow: (.+)$")


@dataclass(frozen=True, slots=True)
class Expected:
    """One expected finding. line: counts from 1. cause: ``-`` none, ``*`` any."""

    line: int
    rule: str
    severity: str
    cause: str

    def matches(self, severity: str, cause: str | None) -> bool:
        """Whether a finding of this rule on this line is the expected one."""
        return severity == self.severity and self.cause in ("*", cause or "-")


@dataclass(frozen=True, slots=True)
class Expectations:
    """All of one file. allowed: (rule, severity) pairs that any line may have."""

    findings: tuple[Expected, ...]
    allowed: frozenset[tuple[str, str]]


def read(text: str) -> Expectations:
    """Parses the comments of one PTX text.

    Raises ValueError with the line if a comment does not follow the grammar.
    """
    findings: list[Expected] = []
    allowed: set[tuple[str, str]] = set()
    for number, line in enumerate(text.splitlines(), 1):
        if found := _ALLOW.match(line):
            allowed.update(_pair(item, number) for item in found[1].split(", "))
        elif found := _EXPECT.search(line):
            findings.extend(_finding(item, number) for item in found[1].split(", "))
    return Expectations(tuple(findings), frozenset(allowed))


def _pair(item: str, number: int) -> tuple[str, str]:
    parts = item.split()
    if len(parts) != 2:
        raise ValueError(f"line {number}: not a rule and a severity: {item!r}")
    return parts[0], parts[1]


def _finding(item: str, number: int) -> Expected:
    parts = item.split()
    if len(parts) != 3:
        raise ValueError(f"line {number}: not a rule, a severity and a cause: {item!r}")
    return Expected(number, *parts)
