"""Stable ids: what makes a finding the same finding after the file around it has changed.

An id is a hash of the rule, the kernel, the opcodes of both accesses with the variables they name, the symbols of
their bytes and the name of the source file, plus the ordinal among findings that agree in all of that. Line numbers,
register names, offsets and the path of the file do not enter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from hashlib import sha256

from ptxfence.analysis.report import Finding, Place

_GUARD = re.compile(r"^\s*@!?\S+\s+")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_LENGTH = 16


def identify(findings: Iterable[Finding], variables: Collection[str]) -> tuple[Finding, ...]:
    """The findings with their ids. `variables` are the names of the module's variables."""
    seen: Counter[str] = Counter()
    named: list[Finding] = []
    for finding in sorted(findings, key=_position):
        key = _key(finding, variables)
        text = f"{key}|{seen[key]}"
        seen[key] += 1
        named.append(replace(finding, id=sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:_LENGTH]))
    return tuple(named)


def _position(finding: Finding) -> tuple[int, int, str, int, int]:
    second = finding.second or finding.first
    return (second.line, second.column, finding.rule, finding.first.line, finding.first.column)


def _key(finding: Finding, variables: Collection[str]) -> str:
    sides = [_side(place, variables) for place in (finding.first, finding.second) if place is not None]
    return "|".join((finding.rule, finding.kernel, *sides))


def _side(place: Place, variables: Collection[str]) -> str:
    opcode, _, operands = _GUARD.sub("", place.text).strip().partition(" ")
    named = ",".join(word for word in _WORD.findall(operands) if word in variables)
    symbol = place.bytes.partition("[")[0].strip()
    source = re.split(r"[\\/]", place.source.file)[-1] if place.source else ""
    return f"{opcode.rstrip(';')} {named} {symbol} {source}"
