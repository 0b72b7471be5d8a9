"""Hand-offs through an mbarrier that is not resolved: never a proof without a fence, never an accusation."""

from __future__ import annotations

import pytest

import ptxfence
from ptxfence.analysis.report import Report, Verdict
from tests.litmus.table import kernel

_KERNEL = """
    INITS 1 32
    mad.lo.u32 m1, n, 8, m1;
    @w0 bra CONSUMER;
    ST
    {writer}
    ARRIVE
    bra DONE;
    CONSUMER:
    AWAIT
    @!lead bra DONE;
    {issuer}
    ISSUE
    DONE:"""
_NOTHING = "mov.u32 v, 0;"


def _checked(writer: str = _NOTHING, issuer: str = _NOTHING) -> Report:
    return ptxfence.check(kernel("doubt", "", "", _KERNEL.format(writer=writer, issuer=issuer)).text)


def test_a_barrier_that_is_not_resolved_stops_the_proof() -> None:
    report = _checked()
    assert report.verdict is Verdict.UNDECIDED
    assert "partners are not known" in report.kernels[0].reasons[0]


@pytest.mark.parametrize("side", ["writer", "issuer"])
def test_a_fence_on_either_side_makes_it_irrelevant(side: str) -> None:
    report = _checked(**{side: "FENCE"})
    assert report.verdict is Verdict.PROVEN
    assert report.findings == ()  # in particular no note that the fence is not needed
