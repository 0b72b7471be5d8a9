"""A sample of the mutants of every clean kernel of the tests and of the small corpus; bench/mutations.py runs all."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from mutations import KINDS, Mutant, clean, fault, fences, judge, kernels, mutate

ROOT = Path(__file__).parent.parent
FOLDERS = (ROOT / "tests/cases", ROOT / "corpus/hand")
ONE_IN = 4


def _mutants(path: Path) -> Iterator[Mutant]:
    """About one mutant in `ONE_IN`, always the same ones."""
    text = path.read_text()
    for fence in fences(text):
        for kind in KINDS:
            drawn = zlib.crc32(f"{path.name} {fence.line} {kind}".encode()) % ONE_IN == 0
            mutant = mutate(text, fence, kind) if drawn else None
            if mutant is not None:
                yield mutant


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_sample(folder: Path) -> None:
    count = 0
    for path in kernels(folder):
        text = path.read_text()
        for mutant in _mutants(path):
            count += 1
            assert fault(text, mutant) == "", f"{path.name}:{mutant.fence.line}: {mutant.kind}"
        judge.cache_clear()
    assert count > 15, count


def test_a_deleted_fence_is_missed() -> None:
    """The mutation works: most kernels are reported without one of their fences."""
    reported = 0
    paths = kernels(ROOT / "corpus/hand")
    for path in paths:
        text = path.read_text()
        mutants = [mutate(text, fence, "delete") for fence in fences(text)]
        reported += any(mutant is not None and not clean(judge(mutant.text)) for mutant in mutants)
    assert reported >= len(paths) * 2 // 3
