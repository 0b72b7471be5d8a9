"""Kernels of the corpus with unrolled loops: still the same verdict, and nothing is done once for every pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.unroll import unrolled
from ptxfence.analysis import conflicts, inflight
from ptxfence.analysis.check import analyse
from ptxfence.grammar import parse

CORPUS = Path(__file__).resolve().parents[2] / "corpus" / "ptx" / "triton-3.9.0"


NAMES = ("attention.sm_90", "ws_cast_gemm.sm_100", "pointer_gemm.sm_90", "tma_attention.sm_90")


@pytest.mark.parametrize("name", NAMES)
def test_unrolled_kernels_are_proven_as_the_original_is(name: str) -> None:
    text = (CORPUS / f"{name}.ptx").read_text()
    larger = unrolled(text, 6)
    assert larger.sizes[1] > 100
    assert [k.verdict for k in analyse(parse(larger.text)).kernels] == [k.verdict for k in analyse(parse(text)).kernels]


def test_copies_of_one_access_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    for copies in (10, 40):
        calls = Counter[str]()
        for module, name in ((conflicts, "overlap"), (inflight, "by_others")):
            monkeypatch.setattr(module, name, counted(getattr(module, name), calls))
        analyse(parse(unrolled((CORPUS / "attention.sm_90.ptx").read_text(), copies).text))
        counts.append(calls.total())
        monkeypatch.undo()
    assert counts[0] > 0
    assert counts[1] <= 1.5 * counts[0]


def counted(action: Callable[..., Any], calls: Counter[str]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        calls[action.__name__] += 1
        return action(*args)

    return run
