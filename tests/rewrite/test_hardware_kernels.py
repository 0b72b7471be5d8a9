"""The kernels of bench/hardware: both variants assemble and differ by the hand-made fence alone."""

from __future__ import annotations

import difflib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ptxfence.analysis.effects import FenceKind
from ptxfence.analysis.isa import lookup
from ptxfence.grammar import parse
from ptxfence.rewrite import assemble

BENCH = Path(__file__).parent.parent.parent / "bench" / "hardware"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bench_hardware_{name}", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


workloads = load("workloads")
NAMES = [w.name for w in workloads.WORKLOADS]
BY_NAME = {w.name: w for w in workloads.WORKLOADS}


def opcodes(text: str, entry: str) -> list[str]:
    (function,) = [f for f in parse(text).modules[0].functions if f.name == entry]
    return [i.opcode for i in function.instructions]


@pytest.mark.parametrize("name", NAMES)
def test_variants_differ_by_one_proxy_fence(name: str) -> None:
    workload = BY_NAME[name]
    old, new = (opcodes(workload.text(v), workload.entry) for v in ("nofence", "fence"))
    changes = [d for d in difflib.ndiff(old, new) if d[0] in "+-"]
    assert len(changes) == 1
    assert changes[0].startswith("+ ")
    (fence,) = lookup(changes[0][2:]).fences
    assert fence.kind is FenceKind.ASYNC


@pytest.mark.parametrize("name", NAMES)
def test_variants_assemble(name: str) -> None:
    if not assemble.available():
        pytest.skip("no ptxas on this machine")
    for variant in ("nofence", "fence"):
        built = assemble.build(BY_NAME[name].text(variant))
        assert built.resources[BY_NAME[name].entry].spill_stores == 0


def test_count_different_assembles() -> None:
    if not assemble.available():
        pytest.skip("no ptxas on this machine")
    assert assemble.assemble((BENCH / "count_different.ptx").read_text()).startswith(b"\x7fELF")


@pytest.mark.parametrize("name", NAMES)
def test_expected_values_have_a_meaning(name: str) -> None:
    """Every tile has an expected value, and none looks like poison throughout."""
    workload = BY_NAME[name]
    if workload.counts_itself:
        pytest.skip("compares on the GPU")
    small, large = workload.data(6, 3), workload.data(12, 3)
    assert small.expected.shape[0] == 6
    assert small.expected.nbytes * 2 == large.expected.nbytes
    assert (small.expected != 0xEEEEEEEE).any()
