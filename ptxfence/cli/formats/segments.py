"""Styled text without a terminal: lines of (text, style) pairs that print plain or, through rich, in colour."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from ptxfence.analysis.report import Finding

Segment = tuple[str, str]
Line = list[Segment]


def clauses(finding: Finding) -> list[str]:
    """The message by clauses, without the one that says where to insert what: the fix of the report says it."""
    found = finding.message.split("; ")
    return [clause for clause in found if not (finding.fix and clause.startswith("insert "))]


def plain(lines: list[Line]) -> str:
    """The lines without any style."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def show(lines: list[Line], stream: IO[str]) -> None:
    """Print the lines, in colour where the stream is a terminal that wants it (NO_COLOR, FORCE_COLOR are obeyed)."""
    if not stream.isatty():
        stream.write(plain(lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    for line in lines:
        console.print(Text.assemble(*line), soft_wrap=True)
