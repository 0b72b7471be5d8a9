"""What bench/repairs.py and bench/reinsert.py say of all files, for a few, others each day; and how they count."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

from bench import reinsert, repairs
from bench.costs import Cost
from ptxfence.analysis.check import analyse
from ptxfence.analysis.report import Severity
from ptxfence.grammar import parse
from ptxfence.rewrite.patch import fix

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases"
HAND = ROOT / "corpus" / "hand"
COMPILED = ROOT / "corpus" / "ptx"


def _today(paths: list[Path], count: int) -> list[Path]:
    first = date.today().toordinal() * count
    return [paths[(first + i) % len(paths)] for i in range(count)]


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas")
@pytest.mark.parametrize("path", _today(repairs.paths(), 8), ids=lambda path: path.name)
def test_repairs_of_today_are_no_dearer_than_by_hand(path: Path) -> None:
    row = repairs.repair(path)
    assert row is None or row.good, row


@pytest.mark.parametrize("path", _today(sorted(COMPILED.rglob("*.ptx")), 3), ids=lambda path: path.name)
def test_fences_put_back_today_are_no_dearer_than_the_author_s(path: Path) -> None:
    assert reinsert.reinsert(path).wrong == ""


def test_a_wide_fence_is_narrowed_where_the_peer_runs_it_too() -> None:
    """In a loop the peer's reads have come around at the place of the fence, but through the same fence."""
    file = parse((CASES / "T22_multicast_request.bug.ptx").read_text())
    patch = fix(file, analyse(file), level=Severity.ERROR)
    assert [edit.insert for edit in patch.edits] == ["fence.proxy.async.shared::cta;"]


def test_a_wide_fence_that_a_peer_s_bytes_need_stays() -> None:
    file = parse((CASES / "C091_peer_window.bug.ptx").read_text())
    patch = fix(file, analyse(file), level=Severity.ERROR)
    assert [edit.insert for edit in patch.edits] == ["fence.proxy.async.shared::cluster;"]


@pytest.mark.parametrize(
    ("bug", "right"),
    [
        (CASES / "C007_recompute.bug.ptx", "C007_recompute.fix.ptx"),
        (HAND / "bulk_store_nofence.ptx", "bulk_store_fence.ptx"),
        (HAND / "bulk_store_hoisted.ptx", "bulk_store_loop_fence.ptx"),
        (HAND / "copy_early_fence.ptx", "copy_fence.ptx"),
        (COMPILED / "triton-3.7.0" / "attention.sm_90.ptx", None),
    ],
)
def test_twins(bug: Path, right: str | None) -> None:
    other = repairs.twin(bug, bug.read_text())
    assert (other.name if other else None) == right


def test_a_moved_fence_counts_as_added() -> None:
    early, right = ((HAND / f"{name}.ptx").read_text() for name in ("bulk_store_early_fence", "bulk_store_fence"))
    assert repairs.added(early, right, "") == Cost(1, 30)
    assert repairs.added(right, right, "") == Cost(0, 0)


def test_other_bytes_are_told() -> None:
    old = "a;\nb;\n"
    assert repairs.inserted_only(old, "a;\nfence.proxy.async.shared::cta; // ptxfence PF101\nb;\n")
    assert not repairs.inserted_only(old, "a;\nfence.proxy.async.shared::cta; // ptxfence PF101\nb; \n")
    assert not repairs.inserted_only(old, "a;\nbar.sync 0; // ptxfence PF101\nb;\n")
