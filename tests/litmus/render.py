"""Writes the tables into docs/model.md, between its markers: `python -m tests.litmus.render`."""

from __future__ import annotations

import re
from pathlib import Path

from tests.litmus.compare import expectations
from tests.litmus.rows import ROWS
from tests.litmus.table import Row

PAGE = Path(__file__).parents[2] / "docs" / "model.md"
BEGIN, END = "<!-- litmus tables: written by tests/litmus/render.py -->", "<!-- end of litmus tables -->"


def _verdict(row: Row) -> str:
    expected = [e for e in expectations(row.text) if not e.severity.endswith("?")]
    if not expected:
        return "clean"
    return "; ".join(f"{e.rule} {e.severity} {e.cause.split('|')[0]}".strip() for e in expected)


def tables() -> str:
    """A Markdown table for each group of rows."""
    groups: dict[str, list[Row]] = {}
    for row in ROWS:
        groups.setdefault(row.group, []).append(row)
    parts: list[str] = []
    for group, rows in groups.items():
        parts += [f"\n### {group[0].upper()}{group[1:]}\n", "| test | what happens | verdict |", "|---|---|---|"]
        parts += [f"| `{row.name}` | {row.about} | {_verdict(row)} |" for row in rows]
    return "\n".join(parts)


def page(old: str) -> str:
    """`old` with its tables replaced."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n{tables()}\n\n{END}", old)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
