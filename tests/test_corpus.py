"""Every corpus file gets exactly the findings that its comments ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from expectations import mismatch

import ptxfence
from ptxfence.analysis.report import Severity

CORPUS = Path(__file__).parent.parent / "corpus"
FILES = sorted(CORPUS.glob("**/*.ptx"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORPUS)))
def test_corpus_file(path: Path) -> None:
    assert mismatch(path.read_text(), path.name) == ""


def test_a_fence_of_another_space_leaves_the_slot_load_a_note() -> None:
    path = CORPUS / "ptx/triton-3.9.0/tma_gemm.sm_100.ptx"
    text = path.read_text().replace("fence.proxy.async.shared::cta;", "fence.proxy.async.global;")
    loads = [f for f in ptxfence.check(text).findings if f.first.text.startswith("ld.shared.b32") and f.second]
    assert {(f.rule, f.severity) for f in loads} == {("PF103", Severity.NOTE)}


def test_there_is_a_corpus() -> None:
    assert len(FILES) > 50
