"""Whose fence counts for a CTA: threads that every CTA has."""

from __future__ import annotations

import ptxfence
from ptxfence.analysis.report import Verdict
from tests.litmus.rows import BY_NAME


def test_a_warp_that_may_be_missing_fences_for_nobody() -> None:
    """Warp 1 fences between two barriers; with at most 64 threads there need not be a warp 1."""
    text = BY_NAME["bar_third_bar"].text
    assert ptxfence.check(text).verdict is Verdict.PROVEN
    assert ptxfence.check(text.replace(".reqntid", ".maxntid")).verdict is Verdict.HAZARD
