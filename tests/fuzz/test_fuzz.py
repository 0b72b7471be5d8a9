"""A second of hostile input; bench/trust/fuzz.py runs it for hours. Inputs that once failed are kept as files."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.fuzz.judge import complaint, kernels
from tests.fuzz.mutate import hostile

KEPT = sorted((Path(__file__).parents[1] / "regressions").glob("*.ptx"))


def test_inputs_repeat() -> None:
    texts = kernels()[:3]
    assert [hostile(seed, texts) for seed in range(20)] == [hostile(seed, texts) for seed in range(20)]
    assert len({hostile(seed, texts) for seed in range(20)}) > 15


@pytest.mark.parametrize("part", range(2))
def test_hostile_inputs(part: int) -> None:
    texts = kernels()
    end = time.monotonic() + 0.5
    seed = part * 1_000_000
    while time.monotonic() < end:
        text = hostile(seed, texts)
        assert complaint(text, repeat=seed % 8 == 0) == "", f"seed {seed}"
        seed += 1
    assert seed > part * 1_000_000


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_kept_inputs(path: Path) -> None:
    assert complaint(path.read_text(encoding="utf-8", errors="surrogateescape"), repeat=True) == ""
