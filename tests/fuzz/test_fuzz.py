"""A second of hostile input; bench/trust/fuzz.py runs it for hours. Inputs that once failed are kept as files."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.fuzz import judge
from tests.fuzz.judge import compiled, complaint, kernels
from tests.fuzz.mutate import hostile, shrink

KEPT = sorted((Path(__file__).parents[1] / "regressions").glob("*.ptx"))


def test_inputs_repeat() -> None:
    texts = kernels()[:3]
    assert [hostile(seed, texts) for seed in range(20)] == [hostile(seed, texts) for seed in range(20)]
    assert len({hostile(seed, texts) for seed in range(20)}) > 15


@pytest.mark.parametrize("part", range(2))
def test_hostile_inputs(part: int) -> None:
    end = time.monotonic() + 0.5
    seed = part * 1_000_000
    while time.monotonic() < end:
        text = hostile(seed, kernels(), compiled())
        assert complaint(text, repeat=seed % 8 == 0) == "", f"seed {seed}"
        seed += 1
    assert seed > part * 1_000_000


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_kept_inputs(path: Path) -> None:
    assert complaint(path.read_text(encoding="utf-8", errors="surrogateescape"), repeat=True) == ""


def test_the_judge_sees_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """An escaped exception, an answer that changes, and an endless loop, which a handler in between does not stop."""
    answers = iter(range(10))

    def raises(text: str) -> tuple[object, ...]:
        raise KeyError(text)

    def wavers(text: str) -> tuple[object, ...]:
        return text, next(answers)

    def forever(text: str) -> tuple[object, ...]:
        while True:
            try:
                "".join(text)
            except Exception:
                continue

    monkeypatch.setattr(judge, "_outcome", raises)
    assert "KeyError" in complaint("x", repeat=False)
    monkeypatch.setattr(judge, "_outcome", wavers)
    assert complaint("x", repeat=True) == "two runs differ"
    monkeypatch.setattr(judge, "HANG", 0.05)
    monkeypatch.setattr(judge, "_outcome", forever)
    assert "Hang" in complaint("x", repeat=False)


def test_shrinking_keeps_what_is_bad() -> None:
    assert shrink("one\ntwo\nthree bad\nfour\n", lambda text: "bad" in text) == "bad"
