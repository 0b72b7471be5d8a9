"""Kernels that once went wrong: odd ones that stopped the analysis, and small ones that were judged wrongly.

Comments at the top of a file say what must come out:

    // expect: proven                        the verdict
    // expect: PF101 no-fence 31 38          a finding: rule, cause (`-`: none), lines of the first and second access
    // recheck: 1                            how many pairs the second path search leaves uncovered
    // fixed: proven                         the verdict after `fix`
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ptxfence
from ptxfence.analysis.check import analyse
from ptxfence.analysis.report import Verdict
from ptxfence.grammar import parse
from ptxfence.grammar.model import FunctionKind
from ptxfence.rewrite.recheck import recheck

FILES = sorted(Path(__file__).parent.glob("*.ptx"))
_WISH = re.compile(r"^// (expect|recheck|fixed): (.+)$", re.MULTILINE)


def _wishes(path: Path, kind: str) -> list[str]:
    return [wish for name, wish in _WISH.findall(path.read_text()) if name == kind]


def _with(kind: str) -> list[Path]:
    return [path for path in FILES if _wishes(path, kind)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_analysis_returns(path: Path) -> None:
    report = analyse(parse(path.read_text(), path.name), timeout=20)
    assert len(report.kernels) == 1
    assert report.kernels[0].seconds < 10


def test_operands_that_make_an_instruction_unknown_stop_the_proof() -> None:
    path = Path(__file__).parent / "missing_descriptor.ptx"
    report = analyse(parse(path.read_text(), path.name))
    assert report.verdict is Verdict.UNDECIDED
    assert "unknown instruction `tcgen05.mma" in report.kernels[0].reasons[0]


@pytest.mark.parametrize("path", _with("expect"), ids=lambda path: path.stem)
def test_judged_rightly(path: Path) -> None:
    report = analyse(parse(path.read_text(), path.name))
    found = {report.verdict.value}
    for finding in report.findings:
        if finding.rule.startswith("PF1") and finding.second is not None:
            cause = finding.cause.value if finding.cause is not None else "-"
            found.add(f"{finding.rule} {cause} {finding.first.line} {finding.second.line}")
    assert set(_wishes(path, "expect")) <= found


@pytest.mark.parametrize("path", _with("recheck"), ids=lambda path: path.stem)
def test_second_opinion(path: Path) -> None:
    module = parse(path.read_text(), path.name).modules[0]
    entry = next(f for f in module.functions if f.kind is FunctionKind.ENTRY)
    assert [str(len(recheck(module, entry)))] == _wishes(path, "recheck")


@pytest.mark.parametrize("path", _with("fixed"), ids=lambda path: path.stem)
def test_repaired(path: Path) -> None:
    assert [ptxfence.fix(path.read_text()).after.verdict.value] == _wishes(path, "fixed")
