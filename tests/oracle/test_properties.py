"""A second of what bench/trust/run.py does for hours: generated kernels, the oracle against the analysis."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.oracle.generate import Features, generate
from tests.oracle.properties import (
    Disagreement,
    certainty,
    check,
    fixed,
    monotone,
    observe,
    soundness,
    unchanged,
)

SEEDS = range(8)


def test_generation_repeats() -> None:
    assert generate(3) == generate(3)
    assert generate(3) != generate(4)


def test_lines_match_between_warp_sizes() -> None:
    kernel = generate(5)
    small, large = kernel.oracle_text.splitlines(), kernel.text(32).splitlines()
    assert len(small) == len(large)
    assert sum(a != b for a, b in zip(small, large, strict=True)) < len(small)


def test_a_role_for_each_rank() -> None:
    every = Features(clusters=1.0, ranks=1.0)
    for seed in range(3):
        kernel = generate(seed, every)
        seen = observe(kernel, seed)
        assert not seen.deadlocks
        assert soundness(seen, check(kernel).report) == []


def test_features_switch() -> None:
    plain = Features(loops=False, branches=False, calls=False, cp_async=False, roles=0, clusters=0)
    for seed in range(20):
        text = generate(seed, plain).text()
        assert "LOOP" not in text
        assert "ELSE" not in text
        assert "call" not in text
        assert "cp.async.ca" not in text


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
def test_kernels_assemble(tmp_path: Path) -> None:
    for seed in range(2):
        path = tmp_path / f"{seed}.ptx"
        path.write_text(generate(seed).text())
        command = ["ptxas", "-arch=sm_90a", "-O0", str(path), "-o", str(tmp_path / "out.cubin")]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_oracle_and_check(seed: int) -> None:
    kernel = generate(seed)
    seen = observe(kernel, seed)
    assert not seen.deadlocks
    report = check(kernel).report
    found: list[Disagreement] = [*soundness(seen, report), *certainty(kernel, seed, seen, report)]
    assert found == []


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_metamorphic(seed: int) -> None:
    kernel = generate(seed)
    report = check(kernel).report
    assert unchanged(kernel, report) == []
    assert monotone(kernel, len(kernel.body) // 2, report) == []


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_fixed_kernels_are_clean(seed: int) -> None:
    assert fixed(generate(seed), seed) == []
