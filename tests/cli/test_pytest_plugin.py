"""The pytest plugin, in a pytest of its own with a Triton that only has the hooks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ptxfence.analysis.rules import rule
from ptxfence.analysis.rules.example import kernel

TRITON = """
from types import SimpleNamespace
compilation = SimpleNamespace(listener=None)
runtime = SimpleNamespace(add_stages_inspection_hook=None)
"""

TESTS = """
import pathlib, pytest
from triton import knobs

def compiles(name):
    group = {name + ".ptx": str(pathlib.Path(name + ".ptx").absolute())}
    if knobs.compilation.listener:
        knobs.compilation.listener(metadata={"name": name}, metadata_group=group, cache_hit=False)

def test_bad(): compiles("bad")
def test_again(): compiles("bad")
def test_good(): compiles("good")

@pytest.mark.ptxfence_allow("missing-fence-war")
def test_allowed(): compiles("war")

@pytest.mark.ptxfence_allow("PF101")
def test_other_allowed(): compiles("waw")

def test_own(ptxfence_check):
    text = pathlib.Path("raw2.ptx").read_text()
    assert [finding.rule for finding in ptxfence_check(text, "mine.ptx").active] == ["PF101"]

@pytest.mark.ptxfence_allow
def test_own_allowed(ptxfence_check): ptxfence_check(pathlib.Path("raw2.ptx").read_text())

def test_fails_anyway():
    compiles("raw3")
    assert False
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("from . import knobs\n")
    (tmp_path / "triton" / "knobs.py").write_text(TRITON)
    (tmp_path / "test_kernels.py").write_text(TESTS)
    texts = {"bad": "PF101", "war": "PF103", "waw": "PF102"}
    for name, identifier in texts.items():
        (tmp_path / f"{name}.ptx").write_text(kernel(rule(identifier).bad))
    (tmp_path / "good.ptx").write_text(kernel(rule("PF101").good))
    for name in ("raw2", "raw3"):
        (tmp_path / f"{name}.ptx").write_text(kernel(rule("PF101").bad) + f"// {name}\n")
    return tmp_path


def run(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(project), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    plugins = ["-p", "ptxfence.integrations.pytest_plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-rA", *plugins]
    return subprocess.run(
        [*command, *words], cwd=project, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_compiling_test_fails(project: Path):
    done = run(project, "--ptxfence", "--strict-markers")
    outcomes = {
        line.split("::")[1].split()[0]: line.split()[0]
        for line in done.stdout.splitlines()
        if line.startswith(("PASSED ", "FAILED "))
    }
    assert outcomes == {
        "test_bad": "FAILED",
        "test_again": "PASSED",  # the text is known already; the first one to compile it has failed
        "test_good": "PASSED",
        "test_allowed": "PASSED",
        "test_other_allowed": "FAILED",
        "test_own": "FAILED",
        "test_own_allowed": "PASSED",
        "test_fails_anyway": "FAILED",
    }
    assert "ptxfence: Triton and" in done.stdout
    assert "error[PF101] missing-fence-raw" in done.stdout
    assert "- ptxfence -" in done.stdout  # the section of the test that failed by itself


def test_without_the_option_nothing_is_watched(project: Path):
    done = run(project)
    assert "1 failed, 7 passed" in done.stdout


def test_settings_of_the_project_count(project: Path):
    (project / "ptxfence.toml").write_text('ignore = ["PF101", "PF102"]\n')
    assert "error[PF10" not in run(project, "--ptxfence", "-k", "bad or other").stdout
    (project / "ptxfence.toml").write_text("nonsense = 1\n")
    assert "nonsense" in run(project, "--ptxfence").stderr
