"""What makes a kernel a hazard or undecided, whatever else is found."""

from __future__ import annotations

import pytest

from ptxfence.analysis.check import analyse
from ptxfence.analysis.report import KernelReport, Severity, Verdict
from ptxfence.grammar import parse
from tests.litmus.rows import BY_NAME
from tests.litmus.table import kernel


def _kernel(text: str, timeout: float | None = None) -> KernelReport:
    return analyse(parse(text), timeout=timeout).kernels[0]


def test_time_that_ran_out_is_no_proof() -> None:
    report = _kernel(BY_NAME["mp_writer"].text, timeout=0.0)
    assert report.verdict is Verdict.UNDECIDED
    assert report.reasons == ("the time limit for one kernel has passed",)


@pytest.mark.parametrize("branch", ["bra i;", "brx.idx i, j;"])
def test_a_branch_to_an_unknown_place_is_no_proof(branch: str) -> None:
    report = _kernel(kernel("jump", "", "", f"ST\nFENCE\nBAR\n{branch}\n@lead ISSUE").text)
    assert report.verdict is Verdict.UNDECIDED
    assert "an indirect branch" in report.reasons[0]


def test_a_warning_is_a_hazard() -> None:
    file = parse(BY_NAME["war_pinned"].text)
    report = analyse(file)
    assert {finding.severity for finding in report.findings} == {Severity.WARNING}
    assert report.verdict is Verdict.HAZARD


def test_an_address_that_cannot_be_followed_is_no_proof() -> None:
    report = _kernel(kernel("far", "", "", "mad.lo.u32 mine, n, 4, mine;\nST\nBAR\n@lead ISSUE").text)
    assert report.verdict is Verdict.UNDECIDED
    assert "address not resolved" in report.reasons[0]
