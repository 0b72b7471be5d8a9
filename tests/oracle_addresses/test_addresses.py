"""Concrete runs of the corpus' kernels: every address lies in its predicted region."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxfence.analysis.values import Values
from ptxfence.grammar import parse

from .check import inside, run_kernel, watched_operands

CORPUS = sorted((Path(__file__).resolve().parents[2] / "corpus" / "ptx").rglob("*.ptx"))


@pytest.mark.parametrize("path", CORPUS[::5], ids=lambda p: f"{p.parent.name}/{p.name}")
def test_concrete_addresses_lie_in_their_regions(path: Path) -> None:
    module = parse(path.read_text(), path.name).modules[0]
    function = next(f for f in module.functions if f.has_body and f.kind.value == "entry")
    outcome = run_kernel(module, function, runs=4, seed=1, steps=2500)
    assert outcome.samples
    assert not outcome.misses


def test_the_checker_would_notice_a_region_that_is_too_small() -> None:
    from ptxfence.analysis.cfg import Cfg

    path = next(p for p in CORPUS if "pointer_gemm.sm_90" in p.name)
    module = parse(path.read_text(), path.name).modules[0]
    function = module.functions[0]
    operands = watched_operands(function, Values(function, Cfg(function), module))
    region = next(r for _, r in operands.values() if r.bounded and (r.hi or 0) - (r.lo or 0) > 1024)
    assert region.hi is not None
    assert region.lo is not None
    assert inside(region.lo, region)
    assert not inside(region.hi, region)
    assert not inside(region.hi - 512, region._replace(hi=region.hi - 1024))
