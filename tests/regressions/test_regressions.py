"""Malformed and odd kernels that once stopped the analysis: each gets a report or an error of the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxfence.analysis.check import analyse
from ptxfence.analysis.report import Verdict
from ptxfence.grammar import parse

FILES = sorted(Path(__file__).parent.glob("*.ptx"))


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
