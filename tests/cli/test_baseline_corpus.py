"""A baseline of real kernels outlives renamed registers and shifted lines, and misses no deleted fence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxfence.batch.examine import Options, examine, task_of
from ptxfence.config import Settings
from ptxfence.triage.baseline import of_results
from ptxfence.triage.result import FileResult
from ptxfence.triage.settle import settle

FOLDER = Path(__file__).parents[2] / "corpus" / "ptx" / "triton-3.7.0"
NAMES = ("store_tile_fence.sm_90", "store_tile_nofence.sm_90", "ws_store_producer.sm_90", "ws_store_nofence.sm_90")
TEXTS = {name: (FOLDER / f"{name}.ptx").read_text() for name in NAMES}
FENCE = re.compile(r"^\s*fence\.proxy\.async\S*;.*\n", re.MULTILINE)


def edited(text: str) -> str:
    """Other register numbers (and as many declared), two lines more at the top of each body, other file paths."""
    text = re.sub(r"(%(?:r|rd|p|rs|f))(\d+)\b", lambda m: f"{m[1]}{int(m[2]) + 700}", text)
    text = re.sub(r"(%(?:r|rd|p|rs|f))<(\d+)>", lambda m: f"{m[1]}<{int(m[2]) + 700}>", text)
    return text.replace("\n{\n", "\n{\n// a line\n\n", 1)


def checked(name: str, text: str) -> FileResult:
    result = settle(examine(task_of(name, text, Options())), Settings())
    assert not result.failed
    return result


@pytest.fixture(scope="module")
def before() -> list[FileResult]:
    return [checked(name, text) for name, text in TEXTS.items()]


def fresh(results: list[FileResult], before: list[FileResult]) -> list[str]:
    known = of_results(before)
    return [f"{result.path} {finding.rule}" for result in known.apply(results) for finding in result.active]


def test_nothing_new_after_unrelated_edits(before: list[FileResult]):
    assert sum(len(result.findings) for result in before) >= 2
    after = [checked(f"other/{name}", edited(text)) for name, text in TEXTS.items()]
    assert fresh(after, before) == []


@pytest.mark.parametrize("name", [name for name in NAMES if FENCE.search(TEXTS[name])])
def test_a_deleted_fence_is_all_that_is_new(name: str, before: list[FileResult]):
    after = [checked(other, FENCE.sub("", edited(text), count=1) if other == name else edited(text))
             for other, text in TEXTS.items()]  # fmt: skip
    assert fresh(after, before) == [f"{name} PF101"]
