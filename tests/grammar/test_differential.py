"""A daily sample of the differential fuzz; docs/front-end.md has the long runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.grammar.assembler import ptxas
from tests.grammar.differential import compare, report

FEATURES = Path(__file__).with_name("data") / "features.ptx"


@pytest.mark.skipif(ptxas() is None, reason="no ptxas")
def test_sample_of_mutants():
    tally = compare([("features.ptx", FEATURES.read_text(encoding="utf-8"))], count=40, seed=7)
    assert tally.wrongly_refused == []
    assert tally.refused_share >= 0.95, report(tally)
