"""Every corpus file gets exactly the findings that its comments ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from expectations import mismatch

CORPUS = Path(__file__).parent.parent / "corpus"
FILES = sorted(CORPUS.glob("**/*.ptx"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORPUS)))
def test_corpus_file(path: Path) -> None:
    assert mismatch(path.read_text(), path.name) == ""


def test_there_is_a_corpus() -> None:
    assert len(FILES) > 50
