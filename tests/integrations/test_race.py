"""`ptxfence race` on a driver made up for tests, launch files, and the launch files of the demo kernels."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ptxfence.errors import ConfigError, InputError
from ptxfence.rewrite.launch_spec import grid_size, parse_launch, read_launch
from tests.integrations.helpers import CORPUS, HERE, REPOSITORY, environment, run

LAUNCH = """
grid = ["2*sms"]
block = [64]
runs = 4
noise = false
arguments = ["input", "output", { type = "i32", value = 100 }]
[buffers]
input = { type = "u32", shape = [100], fill = "random", seed = 3 }
output = { type = "u32", shape = [100], fill = "byte:0xEE", output = true }
"""


DEMOS = sorted((REPOSITORY / "bench" / "hardware" / "race").glob("*.toml"))


def _text(command: str) -> str:
    return f".version 8.0\n.target sm_90a\n.visible .entry copy(\n)\n// fake: {command}\n"


def _race(
    folder: Path, original: str, patched: str, *options: str, launch: str = LAUNCH, device: str = ""
) -> subprocess.CompletedProcess[str]:
    (folder / "a.ptx").write_text(original)
    (folder / "b.ptx").write_text(patched)
    (folder / "launch.toml").write_text(launch)
    words = [str(folder / "a.ptx"), "--patched", str(folder / "b.ptx"), "--launch", str(folder / "launch.toml")]
    env = environment(PYTHONPATH=str(HERE / "fake_cuda"), FAKE_CUDA=device)
    return run([sys.executable, "-m", "ptxfence", "race", *words, "--route", "ptx", *options], env)


def _tracks(result: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return json.loads(result.stdout)["tracks"]


def test_wrong_words_are_counted_and_placed(tmp_path: Path):
    result = _race(tmp_path, _text("skip 7"), _text("copy"), "--format", "json")
    assert result.returncode == 1, result.stderr
    original, patched = _tracks(result)
    assert [run["wrong"] for run in original["runs"]] == [0, 1, 0, 1] or original["wrong_runs"] == 2
    assert (original["words"], original["against"]) == (100, "the patched kernel")
    first = next(run["first"] for run in original["runs"] if run["first"])
    assert (first["output"], first["word"], first["found"] ^ first["expected"]) == ("output", 7, 1)
    assert (patched["wrong_runs"], patched["against"]) == (0, "its first run")


def test_equal_kernels_pass_and_the_table_says_so(tmp_path: Path):
    result = _race(tmp_path, _text("copy"), _text("copy"))
    assert result.returncode == 0, result.stderr
    head, original, patched, last = result.stdout.splitlines()
    assert head.startswith("kernel copy")
    assert original.split()[:4] == ["original", "4", "0", "0"]
    assert patched.split()[:4] == ["patched", "4", "0", "0"]
    assert last == "compared with: original: the patched kernel; patched: its first run"


def test_a_reference_decides_over_both(tmp_path: Path):
    (tmp_path / "ref.py").write_text("def f(buffers):\n    return {'output': buffers['input'] + 1}\n")
    launch = 'reference = "ref.py:f"\n' + LAUNCH
    result = _race(tmp_path, _text("copy"), _text("copy"), "--format", "json", launch=launch)
    assert result.returncode == 1
    assert [track["against"] for track in _tracks(result)] == ["reference"] * 2
    assert all(run["wrong"] == 100 for track in _tracks(result) for run in track["runs"])


def test_a_launch_that_hangs_is_ended(tmp_path: Path):
    result = _race(tmp_path, _text("copy"), _text("hang"), "--timeout", "3")
    assert result.returncode == 2
    assert "the patched kernel did not end within 3 s and was stopped" in result.stderr


def test_a_launch_that_fails_is_named(tmp_path: Path):
    result = _race(tmp_path, _text("fail"), _text("copy"))
    assert result.returncode == 2
    assert "original: cuLaunchKernel: invalid argument" in result.stderr


@pytest.mark.parametrize(
    ("device", "words"), [("none", "no GPU: cuInit: no CUDA-capable device is detected"), ("old", "9.0 or newer")]
)
def test_without_a_fitting_gpu_it_says_so(device: str, words: str, tmp_path: Path):
    result = _race(tmp_path, _text("copy"), _text("copy"), device=device)
    assert result.returncode == 2
    assert words in result.stderr


def test_clusters_noise_and_tensor_maps(tmp_path: Path):
    launch = LAUNCH.replace("noise = false", "cluster = [2]\nshared = 65536") + (
        '[tensormaps]\nmap = { buffer = "input", shape = [10, 10], box = [2, 4], swizzle = "64B" }\n'
    )
    launch = launch.replace("value = 100 }]", 'value = 100 }, "map", { type = "f16", value = 1.5 }]')
    result = _race(tmp_path, _text("copy"), _text("copy"), "--format", "json", launch=launch)
    assert result.returncode == 0, result.stderr
    assert {run["noisy"] for run in _tracks(result)[0]["runs"]} == {False, True}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("grids = 3", "unknown entry 'grids'"),
        ("grid = [0]", "grid: expected up to three positive whole numbers"),
        ('grid = ["sms*2"]', "grid: expected"),
        ("runs = 0", "runs: expected a whole number from 1"),
        ('arguments = ["nothing"]', "no buffer or tensor map 'nothing'"),
        ('arguments = [{ type = "i7", value = 1 }]', "type: expected one of"),
        ('buffers.x = { type = "f32", shape = [1], fill = "pink" }', "'pink' is no filling"),
        ('buffers.x = { type = "f32", shape = [] }', "shape: expected positive whole numbers"),
        ('tensormaps.x = { buffer = "y", box = [1] }', "no buffer 'y'"),
        ("noise = 1", "noise: expected true or false"),
    ],
)
def test_mistakes_in_a_launch_file_are_named(change: str, message: str, tmp_path: Path):
    path = tmp_path / "launch.toml"
    path.write_text(change + "\n")
    with pytest.raises(ConfigError, match=re.escape(message)):
        read_launch(path)


def test_a_launch_file_that_is_missing_or_broken(tmp_path: Path):
    with pytest.raises(InputError):
        read_launch(tmp_path / "nothing.toml")
    (tmp_path / "launch.toml").write_text("grid = [")
    with pytest.raises(ConfigError):
        read_launch(tmp_path / "launch.toml")


def test_sizes_in_multiprocessors():
    assert [grid_size(size, 132) for size in (7, "sms", "4*sms", "4 * sms")] == [7, 132, 528, 528]
    assert parse_launch({"grid": 5}).grid == (5, 1, 1)


@pytest.mark.parametrize("path", DEMOS, ids=lambda path: path.stem)
def test_demo_launch_files_fit_their_kernels(path: Path):
    launch = read_launch(path)
    for variant in ("fence", "nofence"):
        text = (CORPUS / "ptx" / "nvcc-13.0" / f"{path.stem}.{variant}.sm_90.ptx").read_text()
        entry = re.search(rf"\.entry {launch.kernel}\((.*?)\)", text, re.DOTALL)
        assert entry is not None
        sizes = [8 if argument.buffer else 4 for argument in launch.arguments]
        assert [int(bits) // 8 for bits in re.findall(r"\.param \.[ub](\d+)", entry[1])] == sizes
    file, _, function = launch.reference.partition(":")
    assert f"def {function}(" in (path.parent / file).read_text()
