"""Real Triton wheels, no GPU: patched where wanted, untouched elsewhere, one cache folder for all."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ptxfence.integrations.toolkit import write_stand_in
from tests.integrations.helpers import HERE, environment, read_report, run, script, watched
from tests.integrations.wheels import triton_wheel, versions

PROGRAM = [sys.executable, str(HERE / "triton_program.py")]
KERNEL = "ws_store_nofence"
"""A hand-over between warp-specialised roles that no Triton release fences."""


def _env(version: str, cache: Path, **changes: str) -> dict[str, str]:
    return environment(
        PYTHONPATH=str(triton_wheel(version)), TRITON_CACHE_DIR=str(cache), TRITON_DEFAULT_FP_FUSION="1", **changes
    )


def _facts(result: Any) -> dict[str, Any]:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)[KERNEL]


@pytest.mark.parametrize("version", versions())
def test_fix_patches_once_and_leaks_nowhere(version: str, tmp_path: Path):
    env, report = _env(version, tmp_path / "cache"), tmp_path / "report.json"
    before = _facts(run([*PROGRAM, KERNEL], env))

    fixed = _facts(watched([*PROGRAM, KERNEL], env, "--fix", report=report))
    assert fixed["ptx"] == before["ptx"] + 1
    assert fixed["sass"] == before["sass"] + 1
    assert fixed["hash"] != before["hash"]
    (entry,) = read_report(report)["kernels"]
    assert (entry["edits"], entry["cached"], entry["failure"]) == (1, False, "")
    assert entry["notices"][0]["rule"] == "PF101"
    assert entry["notices"][0]["source"].startswith("gluon/handoff.py:")

    again = _facts(watched([*PROGRAM, KERNEL], env, "--fix", report=report))
    assert again == fixed
    (entry,) = read_report(report)["kernels"]
    assert (entry["edits"], entry["cached"]) == (1, True)

    plain = _facts(run([*PROGRAM, KERNEL], env))
    assert plain == before

    # Without a patch to make, the warm cache of unpatched kernels is looked at.
    refused = watched([*PROGRAM, KERNEL], env, "--error", report=report)
    assert refused.returncode == 1
    assert "HazardError" in refused.stderr
    assert "gluon/handoff.py:" in refused.stderr
    (entry,) = read_report(report)["kernels"]
    assert (entry["edits"], entry["cached"], entry["notices"][0]["severity"]) == (0, True, "error")


@pytest.mark.parametrize("version", versions())
def test_the_stand_in_patches_and_keeps_its_entries_apart(version: str, tmp_path: Path):
    write_stand_in(tmp_path / "ptxas", _ptxas(version))
    facts: list[dict[str, Any]] = []
    for mode in ("check", "fix"):
        # Only the stand-in knows the mode: the hook stays out where the .pth file is installed.
        path = str(script(tmp_path / mode, f'#!/bin/sh\nPTXFENCE={mode} exec {tmp_path / "ptxas"} "$@"\n'))
        env = _env(version, tmp_path / "cache", TRITON_PTXAS_PATH=path, TRITON_PTXAS_BLACKWELL_PATH=path)
        facts.append(_facts(run([*PROGRAM, KERNEL], env)))
    checked, fixed = facts
    assert fixed["sass"] == checked["sass"] + 1
    assert fixed["ptx"] == checked["ptx"]
    assert fixed["hash"] != checked["hash"]


def _ptxas(version: str) -> Path:
    folder = triton_wheel(version) / "triton" / "backends" / "nvidia" / "bin"
    return folder / ("ptxas-blackwell" if version == "3.9.0" else "ptxas")


@pytest.mark.parametrize("version", versions())
def test_in_one_process(version: str, tmp_path: Path):
    """Hooks of others, nesting, faults, the JIT, autotuning, forked workers: triton_inside.py asserts."""
    env = _env(version, tmp_path / "cache", PTXFENCE_JOURNAL=str(tmp_path))
    result = run([sys.executable, str(HERE / "triton_inside.py")], env)
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.splitlines()[-1] == "all done"


@pytest.mark.parametrize("version", versions(daily=("3.9.0",)))
def test_32_processes_share_a_cache(version: str, tmp_path: Path):
    env = _env(version, tmp_path / "cache", PTXFENCE_JOURNAL=str(tmp_path))
    result = run([sys.executable, str(HERE / "triton_crowd.py")], env, timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.splitlines()[-1] == "all done"
