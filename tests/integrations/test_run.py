"""`ptxfence run`: the program keeps its own status, output and signals, and every process is watched."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integrations.helpers import (
    BUGGY,
    FENCE,
    HERE,
    REPOSITORY,
    environment,
    fake_ptxas,
    read_report,
    run,
    script,
    watched,
)

PYTHON = sys.executable


def test_status_and_output_are_the_program_s_own():
    program = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"
    result = watched([PYTHON, "-c", program], environment(), "--quiet")
    assert (result.returncode, result.stdout, result.stderr) == (7, "out\n", "err\n")


def test_the_summary_goes_to_standard_error():
    result = watched([PYTHON, "-c", "print('out')"], environment())
    assert (result.returncode, result.stdout) == (0, "out\n")
    assert result.stderr.startswith("ptxfence: 0 kernels")


def test_a_signal_that_ends_the_program_shows_in_the_status():
    result = watched([PYTHON, "-c", "import os; os.kill(os.getpid(), 9)"], environment(), "--quiet")
    assert result.returncode == 128 + 9


def test_signals_are_passed_on():
    program = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(5)); print('ready', flush=True); "
    command = [PYTHON, "-m", "ptxfence", "run", "--quiet", "--", PYTHON, "-c", program + "time.sleep(30)"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 5


def test_a_program_that_does_not_exist(tmp_path: Path):
    result = watched([str(tmp_path / "nothing")], environment())
    assert result.returncode == 2
    assert "No such file" in result.stderr


@pytest.mark.parametrize("words", [[], ["--check", "--fix", "--", "true"]])
def test_usage_errors(words: list[str]):
    assert run([PYTHON, "-m", "ptxfence", "run", *words], environment()).returncode == 2


def test_settings_that_make_no_sense_stop_before_the_program(tmp_path: Path):
    (tmp_path / "ptxfence.toml").write_text("colour = 'red'\n")
    result = watched([PYTHON, "-c", "print('ran')"], environment(), "--settings", str(tmp_path / "ptxfence.toml"))
    assert (result.returncode, result.stdout) == (2, "")
    assert "unknown setting 'colour'" in result.stderr


@pytest.mark.parametrize(("mode", "present"), [("--fix", True), ("--check", False)])
def test_caches_of_whole_graphs_are_kept_apart_when_patching(mode: str, present: bool):
    program = "import os; print(os.environ['TORCH_COMPILE_CACHE_KEY_TAG'])"
    result = watched([PYTHON, "-c", program], environment(TORCH_COMPILE_CACHE_KEY_TAG="mine"), "--quiet", mode)
    assert result.stdout.startswith("mine")
    assert ("ptxfence-" in result.stdout) is present


def test_native_programs_get_our_ptxas_in_every_process(tmp_path: Path):
    (tmp_path / "bin").mkdir()
    fake_ptxas(tmp_path / "bin").rename(tmp_path / "bin" / "ptxas")
    program = script(
        tmp_path / "build", f"#!/bin/sh\ncd {tmp_path}\n(ptxas {BUGGY} -o a) && sh -c 'ptxas {BUGGY} -o b'\n"
    )
    env = environment("fenced", PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    report = tmp_path / "report.json"
    for mode, present in (("--fix", True), ("--check", False)):
        result = watched([str(program)], env, mode, report=report)
        assert result.returncode == 0, result.stderr
        for name in ("a", "b"):
            assert (FENCE in (tmp_path / name).read_text()) is present
        summary = read_report(report)["summary"]
        assert (summary["kernels"], summary["patched"], summary["errors"]) == (1, int(present), 1)
        assert summary["processes"] == 2
    assert "1 kernel, 1 error" in result.stderr


def test_nothing_of_ours_is_imported_before_it_is_needed(tmp_path: Path):
    program = "import sys; print(sorted(m for m in sys.modules if m.startswith(('ptxfence', 'lark', 'networkx'))))"
    result = watched([PYTHON, "-c", program], environment(), "--quiet", "--fix")
    assert result.stdout.strip() == "['ptxfence', 'ptxfence.errors', 'ptxfence.integrations', " + (
        "'ptxfence.integrations.activate']"
    )


def test_the_program_s_own_sitecustomize_still_runs(tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.marker = 'its own'\n")
    program = "import sys; print(sys.marker, sys.modules['sitecustomize'].__file__)"
    result = watched([PYTHON, "-c", program], environment(PYTHONPATH=str(tmp_path)), "--quiet")
    assert result.stdout.split() == ["its", "own", str(tmp_path / "sitecustomize.py")]


def test_children_started_with_the_path_of_their_parent_are_watched(tmp_path: Path):
    """So torch starts Inductor's compile workers: with `sys.path` as `PYTHONPATH`."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.marker = 'its own'\n")
    child = "import sys; print(sys.marker, 'ptxfence.integrations.activate' in sys.modules)"
    program = (
        "import os, subprocess, sys; path = os.pathsep.join(sys.path); "
        f"subprocess.run([sys.executable, '-c', {child!r}], env={{**os.environ, 'PYTHONPATH': path}}, check=True)"
    )
    python = os.path.realpath(sys.executable)
    result = watched([python, "-c", program], {**_bare(), "PYTHONPATH": str(tmp_path)}, "--quiet")
    assert result.stdout.split() == ["its", "own", "True"], result.stderr


def test_a_module_that_was_only_looked_for_is_watched_once_it_is_imported(tmp_path: Path):
    """So torch does it: `find_spec("triton")` when it is imported itself, the import with the first kernel."""
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("")
    program = "import importlib.util; importlib.util.find_spec('triton'); import triton; import triton"
    result = watched([PYTHON, "-c", program], environment(PYTHONPATH=str(tmp_path)), "--quiet")
    assert (result.returncode, result.stderr.count("Triton is not watched")) == (0, 1), result.stderr


def test_another_interpreter_finds_what_we_need_and_nothing_else_of_ours():
    """The interpreter behind the virtual environment has neither ptxfence nor lark."""
    program = (
        "import ptxfence.integrations.outcome, lark, sys; print([p for p in sys.path if p.startswith(sys.argv[1])])"
    )
    python = os.path.realpath(sys.executable)
    result = watched([python, "-c", program, sys.prefix], _bare(), "--quiet")
    assert (result.returncode, result.stdout) == (0, "[]\n"), result.stderr


def _bare() -> dict[str, str]:
    """An environment in which only the command line itself can find ptxfence."""
    return {name: value for name, value in environment().items() if name != "PYTHONPATH"}


def test_a_program_that_clears_its_environment_is_left_alone():
    result = watched(["/usr/bin/env", "-i", PYTHON, "-c", "print('fine')"], environment(), "--quiet")
    assert (result.returncode, result.stdout, result.stderr) == (0, "fine\n", "")


def test_the_pth_line_costs_less_than_a_millisecond():
    line = (REPOSITORY / "ptxfence" / "integrations" / "ptxfence.pth").read_text()
    assert line.startswith("import ")
    assert line.count("\n") == 1
    program = (
        "import os, sys, time; os.environ.pop('PTXFENCE', None); line = open(sys.argv[1]).read(); "
        "start = time.perf_counter(); exec(line); print(time.perf_counter() - start); "
        "print([m for m in sys.modules if 'ptxfence' in m])"
    )
    path = HERE.parent.parent / "ptxfence" / "integrations" / "ptxfence.pth"
    seconds, modules = run([PYTHON, "-c", program, str(path)], environment()).stdout.split()
    assert float(seconds) < 0.001
    assert modules == "[]"


def test_the_pth_line_activates(tmp_path: Path):
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").touch()
    (tmp_path / "triton" / "knobs.py").write_text("class _Knobs: pass\nruntime = compilation = _Knobs()\n")
    line = (REPOSITORY / "ptxfence" / "integrations" / "ptxfence.pth").read_text()
    result = run([PYTHON, "-c", line + "\nimport triton"], environment(PTXFENCE="fix", PYTHONPATH=str(tmp_path)))
    assert result.returncode == 0
    assert result.stderr.strip() == (
        "ptxfence: Triton is not watched: this Triton has no stages inspection hook; ptxfence-ptxas works with it"
    )


def test_starting_costs_little():
    """CPU time, children included: wall time says more about what else the machine does."""
    plain = _cpu_seconds(lambda: run([PYTHON, "-c", "pass"], environment()))
    assert _cpu_seconds(lambda: watched([PYTHON, "-c", "pass"], environment(), "--quiet")) - plain < 1.5


def _cpu_seconds(action: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
