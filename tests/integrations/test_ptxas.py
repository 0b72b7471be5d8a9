"""The stand-in for ptxas, in front of a fake ptxas that shows what it got."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

import pytest

from ptxfence.errors import InputError
from ptxfence.integrations.ptxas_inputs import read_arguments
from ptxfence.integrations.toolkit import find_toolkit, shadow, write_stand_in
from tests.integrations.helpers import BUGGY, FENCE, environment, fake_ptxas, run, script

FAULTS = {
    "crash": "RuntimeError: something broke",
    "memory": "MemoryError",
    "allocate": "MemoryError",
    "recursion": "RecursionError",
    "leave": "SystemExit: 3",
    "hang": "not done within 0.3 s",
    "segfault": "ended by signal 11",
    "empty": "the patched text is empty",
}


@pytest.fixture
def stand_in(tmp_path: Path) -> list[str]:
    write_stand_in(tmp_path / "ptxas", fake_ptxas(tmp_path))
    return [str(tmp_path / "ptxas")]


def _kernel(folder: Path, name: str = "k.ptx", more: str = "") -> str:
    path = folder / name
    path.write_text(BUGGY.read_text() + more)
    return str(path)


def _env(fake: str, mode: str) -> dict[str, str]:
    return environment(fake, PTXFENCE=mode, PTXFENCE_TIMEOUT="0.3" if fake == "hang" else "30")


def test_fix_hands_over_a_patched_copy(tmp_path: Path, stand_in: list[str]):
    kernel, out = _kernel(tmp_path), tmp_path / "out"
    before = Path(kernel).read_bytes()
    result = run([*stand_in, "-v", "-arch=sm_90a", kernel, "-o", str(out)], _env("fenced", "fix"))
    assert result.returncode == 0
    assert FENCE in out.read_text()
    assert Path(kernel).read_bytes() == before
    # ptxas's messages name the file that the user knows, and our copy is gone.
    assert f"compiling {kernel}" in result.stderr
    handed = next(word for word in (tmp_path / "arguments").read_text().splitlines() if word.endswith(".ptx"))
    assert handed != kernel
    assert not Path(handed).exists()


@pytest.mark.parametrize("mode", ["check", ""])
def test_check_hands_over_the_same_arguments(mode: str, tmp_path: Path, stand_in: list[str]):
    words = ["-v", "-arch=sm_90a", _kernel(tmp_path), "-o", str(tmp_path / "out")]
    result = run([*stand_in, *words], _env("fenced", mode))
    assert result.returncode == 0
    assert (tmp_path / "arguments").read_text().splitlines() == words
    assert "ptxfence: k.py:3: error: PF101 missing-fence-raw in k: no fence" in result.stderr


def test_error_refuses_and_runs_no_ptxas(tmp_path: Path, stand_in: list[str]):
    result = run([*stand_in, _kernel(tmp_path), "-o", str(tmp_path / "out")], _env("fenced", "error"))
    assert result.returncode == 1
    assert "k.py:3: error: PF101" in result.stderr
    assert not (tmp_path / "arguments").exists()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_ours_is_one_line_and_no_more(fault: str, tmp_path: Path, stand_in: list[str]):
    words = [_kernel(tmp_path), "-o", str(tmp_path / "out")]
    result = run([*stand_in, *words], _env(fault, "fix"))
    assert result.returncode == 0
    assert (tmp_path / "arguments").read_text().splitlines() == words
    ours = [line for line in result.stderr.splitlines() if "ptxfence" in line]
    assert len(ours) == 1
    assert FAULTS[fault] in ours[0]
    assert (tmp_path / "out").read_bytes() == Path(words[0]).read_bytes()


@pytest.mark.parametrize("fault", ["crash", "segfault"])
def test_error_mode_assembles_nothing_unexamined(fault: str, tmp_path: Path, stand_in: list[str]):
    result = run([*stand_in, _kernel(tmp_path), "-o", str(tmp_path / "out")], _env(fault, "error"))
    assert result.returncode == 1
    assert not (tmp_path / "arguments").exists()


def test_a_patch_that_ptxas_refuses_is_dropped(tmp_path: Path, stand_in: list[str]):
    out = tmp_path / "out"
    result = run([*stand_in, _kernel(tmp_path), "-o", str(out)], _env("garbage", "fix"))
    assert result.returncode == 0
    assert out.read_text() == BUGGY.read_text()
    assert "syntax error" not in result.stderr


@pytest.mark.parametrize("status", [1, 255])
def test_the_exit_status_is_that_of_ptxas(status: int, tmp_path: Path, stand_in: list[str]):
    kernel = _kernel(tmp_path, more=f"// exit {status}\n")
    for mode in ("check", "fix"):
        assert run([*stand_in, kernel], _env("fenced", mode)).returncode == status


def test_death_by_signal_is_passed_on(tmp_path: Path):
    dying = script(tmp_path / "dying", "#!/bin/sh\nkill -SEGV $$\n")
    write_stand_in(tmp_path / "ptxas", dying)
    result = run([str(tmp_path / "ptxas"), _kernel(tmp_path)], _env("fenced", "fix"))
    assert result.returncode == -signal.SIGSEGV


def test_response_files_and_several_inputs(tmp_path: Path, stand_in: list[str]):
    first, second, clean = (_kernel(tmp_path, name) for name in ("a b.ptx", "b.ptx", "c.ptx"))
    Path(clean).write_text(".version 8.0\n.target sm_90a\n.address_size 64\n")
    out = str(tmp_path / "out.cubin")
    (tmp_path / "inner").write_text(f"'{first}' -o {out}\n")
    (tmp_path / "outer").write_text(f"--options-file {tmp_path / 'inner'} -v\n")
    result = run([*stand_in, "-optf", str(tmp_path / "outer"), second, clean], _env("fenced", "fix"))
    assert result.returncode == 0
    words = (tmp_path / "arguments").read_text().splitlines()
    assert words[1:4] == ["-o", out, "-v"]
    assert [Path(words[0]).name, Path(words[4]).name] == ["a b.ptx", "b.ptx"]
    assert words[0] != first
    assert words[4] != second
    assert words[5] == clean


def test_outputs_and_options_are_no_inputs(tmp_path: Path):
    kernel, old = _kernel(tmp_path), _kernel(tmp_path, "old.ptx")
    arguments = read_arguments(["-arch", "sm_90a", "-o", old, kernel, "missing.ptx", str(tmp_path)])
    assert arguments.inputs == (kernel,)
    assert not arguments.strings
    assert read_arguments(["-ias", BUGGY.read_text()]).strings


def test_response_files_that_include_each_other_are_refused(tmp_path: Path, stand_in: list[str]):
    (tmp_path / "loop").write_text(f"-optf {tmp_path / 'loop'}\n")
    with pytest.raises(ValueError, match="include each other"):
        read_arguments(["-optf", str(tmp_path / "loop")])
    result = run([*stand_in, "-optf", str(tmp_path / "loop")], _env("fenced", "fix"))
    assert "ptxas works on the untouched input" in result.stderr
    assert (tmp_path / "arguments").exists()


def test_a_long_command_line_goes_through_a_file(tmp_path: Path, stand_in: list[str]):
    kernel, out = _kernel(tmp_path), tmp_path / "out"
    result = run([*stand_in, kernel, "-o", str(out), *["--no-such-option"] * 9000], _env("fenced", "fix"))
    assert result.returncode == 0
    assert FENCE in out.read_text()
    assert (tmp_path / "arguments").read_text().startswith("--options-file\n")


def test_version_names_us_mode_and_settings(tmp_path: Path, stand_in: list[str]):
    texts = {mode: run([*stand_in, "--version"], _env("", mode)).stdout for mode in ("check", "fix")}
    assert all("release 13.0" in text for text in texts.values())
    last = {text.splitlines()[-1] for text in texts.values()}
    assert len(last) == 2
    assert all(line.startswith("ptxfence-") for line in last)


def test_the_real_ptxas_is_never_the_stand_in(tmp_path: Path):
    write_stand_in(tmp_path / "ptxas", None)
    found = "from ptxfence.integrations.ptxas import real_ptxas; print(real_ptxas())"
    env = _env("", "fix")
    env["PATH"] = f"{tmp_path}:{env['PATH']}"
    result = run([sys.executable, "-c", found], env)
    assert result.returncode == 0
    assert str(tmp_path) not in result.stdout


def test_no_ptxas_at_all(tmp_path: Path):
    env = {**_env("", "fix"), "PATH": "/nowhere", "PTXFENCE_PTXAS": "/nowhere/ptxas"}
    result = run([sys.executable, "-m", "ptxfence.integrations.ptxas", "k.ptx"], env)
    assert result.returncode == 1
    assert "no ptxas found" in result.stderr


def test_a_shadow_toolkit_has_links_and_our_ptxas(tmp_path: Path):
    toolkit = tmp_path / "cuda"
    (toolkit / "bin").mkdir(parents=True)
    (toolkit / "include").mkdir()
    fake_ptxas(toolkit / "bin").rename(toolkit / "bin" / "ptxas")
    script(toolkit / "bin" / "nvcc", "#!/bin/sh\n")
    result = run(
        [sys.executable, "-m", "ptxfence.integrations.ptxas", "--shadow-toolkit", str(tmp_path / "shadow"),
         "--toolkit", str(toolkit)],
        environment(),
    )  # fmt: skip
    assert result.returncode == 0
    assert (tmp_path / "shadow" / "include").resolve() == toolkit / "include"
    assert (tmp_path / "shadow" / "bin" / "nvcc").resolve() == toolkit / "bin" / "nvcc"
    out = tmp_path / "out"
    run([str(tmp_path / "shadow" / "bin" / "ptxas"), _kernel(tmp_path), "-o", str(out)], _env("fenced", "fix"))
    assert FENCE in out.read_text()


def test_a_shadow_needs_a_toolkit_and_an_empty_folder(tmp_path: Path):
    with pytest.raises(InputError, match="no bin/ptxas"):
        shadow(tmp_path, tmp_path / "shadow")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ptxas").touch()
    with pytest.raises(InputError, match="not empty"):
        shadow(tmp_path, tmp_path / "bin")


@pytest.mark.skipif(find_toolkit() is None, reason="no CUDA toolkit with nvcc here")
def test_nvcc_of_the_shadow_patches_what_it_compiles(tmp_path: Path):
    toolkit = find_toolkit()
    assert toolkit is not None
    shadow(toolkit, tmp_path / "shadow")
    source = tmp_path / "k.cu"
    shutil.copy(BUGGY.parent.parent.parent / "cuda" / "transpose_bulk_store.cu", source)
    nvcc = [str(tmp_path / "shadow" / "bin" / "nvcc"), "-arch=sm_90a", "-cubin", str(source), "-o"]
    made: dict[str, bytes] = {}
    for mode in ("check", "fix"):
        result = run([*nvcc, str(tmp_path / mode)], _env("fenced", mode))
        assert result.returncode == 0, result.stderr
        made[mode] = (tmp_path / mode).read_bytes()
    assert made["fix"] != made["check"]
