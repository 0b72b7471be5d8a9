"""Expectations that stand in a test's PTX: `// expect: RULE severity cause, ...` ends the line they speak of.

The line is that of the second access (the async operation); for PF2xx and PF301, that of `first`. A file
without a comment has no finding. The cause is `-` for rules without one and `*` where any will do. A line
`// allow: RULE severity, ...` names findings that the file may have anywhere (docs/corpus.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ptxfence.analysis.check import analyse
from ptxfence.analysis.report import Finding, Report, Severity
from ptxfence.grammar.parse import parse

_COMMENT = re.compile(r"// expect: ([^\n]*)")
_ALLOWED = re.compile(r"^// allow: ([^\n]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True, order=True)
class Expected:
    line: int
    rule: str
    severity: str
    cause: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.rule} {self.severity} {self.cause}"


def expected(text: str) -> set[Expected]:
    """What the comments of `text` ask for."""
    found: set[Expected] = set()
    for number, line in enumerate(text.splitlines(), 1):
        match = _COMMENT.search(line)
        for item in re.split("[;,]", match[1]) if match else ():
            rule, severity, cause = item.split()
            found.add(Expected(number, rule, severity, "" if cause == "-" else cause))
    return found


def _line(finding: Finding) -> int:
    place = finding.second if finding.second is not None else finding.first
    return place.line


def found(report: Report) -> set[Expected]:
    """What `report` says, in the same terms; rules that are off are left out."""
    return {
        Expected(_line(f), f.rule, f.severity.name.lower(), f.cause.value if f.cause else "")
        for f in report.findings
        if f.severity > Severity.OFF
    }


def run(text: str, filename: str = "<string>") -> Report:
    """The report of `text`, which must parse."""
    file = parse(text, filename)
    assert not file.errors, file.errors[0]
    return analyse(file)


def mismatch(text: str, filename: str = "<string>") -> str:
    """Empty if the report of `text` is exactly what its comments ask for, else both differences."""
    want, have = expected(text), found(run(text, filename))
    loose = {(e.line, e.rule, e.severity) for e in want if e.cause == "*"}
    have = {replace(e, cause="*") if (e.line, e.rule, e.severity) in loose else e for e in have}
    allowed = {item.strip() for match in _ALLOWED.finditer(text) for item in match[1].split(",")}
    have = {e for e in have if e in want or f"{e.rule} {e.severity}" not in allowed}
    lines = [f"missing:    {item}" for item in sorted(want - have)]
    lines += [f"unexpected: {item}" for item in sorted(have - want)]
    return "\n".join(lines)
