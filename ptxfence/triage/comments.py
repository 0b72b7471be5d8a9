"""Suppression comments in PTX text: `// ptxfence: ignore[PF103] reason`."""

from __future__ import annotations

import re

from ptxfence.analysis.report import Finding
from ptxfence.analysis.rules import resolve
from ptxfence.errors import ConfigError
from ptxfence.triage.result import IgnoreComment, places

_COMMENT = re.compile(r"//\s*ptxfence:\s*ignore\b(?:\s*\[([^\]\n]*)\])?[ \t]*([^\n\r]*)")
_PASSED_OVER = re.compile(r"\s*(//.*|\.loc\b.*)?$")  # lines between a comment and the instruction it is meant for


def find_comments(text: str) -> tuple[IgnoreComment, ...]:
    """Every ignore comment of a text. A comment alone on its line covers the next instruction's line."""
    if "ptxfence:" not in text:
        return ()
    lines = text.split("\n")
    found: list[IgnoreComment] = []
    for index, line in enumerate(lines):
        match = _COMMENT.search(line)
        if match is None:
            continue
        alone = not line[: match.start()].strip()
        covers = _next_instruction(lines, index) if alone else index + 1
        rules, problem = _rules(match[1])
        found.append(IgnoreComment(index + 1, covers, rules, match[2].strip(), problem))
    return tuple(found)


def silencer(finding: Finding, comments: tuple[IgnoreComment, ...]) -> IgnoreComment | None:
    """The comment that silences the finding, on or above the line of one of its accesses."""
    if not comments:
        return None
    lines = {place.line for place in places(finding)}
    return next((note for note in comments if finding.rule in note.rules and note.covers in lines), None)


def _next_instruction(lines: list[str], index: int) -> int:
    for later in range(index + 1, len(lines)):
        if not _PASSED_OVER.match(lines[later].rstrip("\r")):
            return later + 1
    return index + 1


def _rules(inside: str | None) -> tuple[frozenset[str], str]:
    if inside is None or not inside.strip():
        return frozenset(), "names no rule; write ignore[PF103]"
    try:
        return frozenset(resolve(word) for word in inside.split(",")), ""
    except ConfigError as error:
        return frozenset(), str(error)
