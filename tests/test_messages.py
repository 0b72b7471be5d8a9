"""What each message of each finding has to say, over the corpus and the cases; the page that explains ten of them."""

from __future__ import annotations

import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from expectations import run

from ptxfence.analysis.report import Cause, Finding, Severity

ROOT = Path(__file__).parent.parent
FILES = sorted([*(ROOT / "corpus").glob("**/*.ptx"), *(ROOT / "tests/cases").glob("*.ptx")])
MISSING_FENCE = {"PF101", "PF102", "PF103", "PF104", "PF111", "PF112"}
NO_FENCE_SEEN = {Cause.NO_FENCE, Cause.UNSYNCHRONISED}
_SEEN = re.compile(r"the fence at line (\d+)")
_INSERT = re.compile(r"insert `(fence\.proxy\.async[\w.:]*;)` before line (\d+)")
_FENCE = re.compile(r"\b(fence|membar)\.")

def _parameters() -> list[object]:
    return [pytest.param(p, id=str(p.relative_to(ROOT))) for p in FILES]


@cache
def _findings(path: Path) -> tuple[Finding, ...]:
    return run(path.read_text(), path.name).findings


@pytest.mark.parametrize("path", _parameters())
def test_messages(path: Path) -> None:
    lines = path.read_text().splitlines()
    for finding in _findings(path):
        assert _missing(finding, lines) == [], finding.message


def _missing(finding: Finding, lines: list[str]) -> list[str]:
    """What the message does not say."""
    found = _places(finding)
    if finding.rule in MISSING_FENCE:
        found += _synchronisation(finding) + _fence(finding, lines) + _insertion(finding, lines)
    return found


def _places(finding: Finding) -> list[str]:
    """Both accesses by line and opcode; for notes on a fence or a construct, that one."""
    found: list[str] = []
    for place in (finding.first, finding.second):
        if place is None or finding.rule == "PF301":
            continue
        opcode = re.sub(r"^@!?\S+\s+", "", place.text).split()[0].rstrip(".;")
        named = re.search(rf"line {place.line}\b[^;]*{re.escape(opcode)}", finding.message)
        if named is None:
            found.append(f"line {place.line}: {opcode}")
    return found


def _synchronisation(finding: Finding) -> list[str]:
    said = re.search(r"ordered by \S+ \(line \d+\)|no synchronisation stands between", finding.message)
    unordered = finding.cause is Cause.UNSYNCHRONISED and "nothing orders the first access" in finding.message
    return [] if said or unordered else ["the synchronisation between"]


def _fence(finding: Finding, lines: list[str]) -> list[str]:
    """The cause by name, and unless there is none the fence by line and text."""
    if finding.cause is None or finding.cause.value not in finding.message:
        return ["the cause"]
    seen = _SEEN.search(finding.message)
    if finding.cause in NO_FENCE_SEEN:
        return [] if seen is None else ["a fence is named although the cause knows none"]
    if seen is None or _FENCE.search(lines[int(seen[1]) - 1]) is None:
        return ["the fence that was seen"]
    return []


def _insertion(finding: Finding, lines: list[str]) -> list[str]:
    """The insertion line where a fence repairs it; nothing where none does."""
    said = _INSERT.search(finding.message)
    if finding.fence is None or finding.severity < Severity.WARNING:
        return []
    if said is None or said[1] != finding.fence:
        return ["the insertion line"]
    return [] if 1 <= int(said[2]) <= len(lines) else ["an insertion line of the file"]


def test_unordered_accesses_have_no_insertion() -> None:
    """No fence repairs accesses that nothing orders."""
    found = [f for path in FILES for f in _findings(path) if f.cause is Cause.UNSYNCHRONISED]
    assert found
    assert [f.message for f in found if f.fence is not None or _INSERT.search(f.message)] == []


def _builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_reading", ROOT / "docs/build_reading.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python docs/build_reading.py` writes it."""
    monkeypatch.setenv("NO_COLOR", "1")
    module = _builder()
    assert len(module.EXAMPLES) == 10
    assert module.PAGE.read_text(encoding="utf-8") == module.page()
