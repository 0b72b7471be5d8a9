"""Finds NVIDIA's command line tools (ptxas, nvdisasm, cuobjdump) and runs them safely.

Order of the search: `PTXFENCE_<TOOL>` (then nothing else counts), the registry packages (`nvidia-cuda-nvcc`,
`nvidia-cuda-nvdisasm`, `nvidia-cuda-cuobjdump`), `PATH`, the tools that a Triton wheel brings, `CUDA_HOME`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ptxfence.errors import AssemblyError

_RELEASE = re.compile(r"release (\d+)\.(\d+)")
_TRITON_NAMES = {"ptxas": ("ptxas", "ptxas-blackwell")}
_MESSAGES = 1 << 20  # bytes of a tool's messages that are read back


@dataclass(frozen=True, slots=True)
class Tool:
    """An executable; `release` is the CUDA release that `--version` names; `origin` says where it was found."""

    path: str
    release: tuple[int, int]
    origin: str

    @property
    def name(self) -> str:
        """For people: `ptxas 13.0`."""
        return f"{Path(self.path).name} {self.release[0]}.{self.release[1]}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool said. `status` is its exit status, negative for a signal."""

    status: int
    stdout: str
    stderr: str


def find(name: str) -> tuple[Tool, ...]:
    """Every working copy of tool `name`, newest release first; at one release in the order of the search.

    Raises AssemblyError if `PTXFENCE_<TOOL>` names something that does not run.
    """
    variable = f"PTXFENCE_{name.upper()}"
    if chosen := os.environ.get(variable):
        release = release_of(chosen)
        if release is None:
            raise AssemblyError(f"{variable}={chosen} is not a working {name}")
        return (Tool(chosen, release, variable),)
    found: dict[str, Tool] = {}
    for path, origin in _candidates(name):
        real = os.path.realpath(path)
        if real not in found and (release := release_of(path)) is not None:
            found[real] = Tool(path, release, origin)
    return tuple(sorted(found.values(), key=lambda tool: tool.release, reverse=True))


def release_of(path: str) -> tuple[int, int] | None:
    """The CUDA release of the executable, None if it does not run or does not say."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return _release_of(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=64)
def _release_of(path: str, _mtime: int, _size: int) -> tuple[int, int] | None:
    try:
        outcome = run([path, "--version"], timeout=20.0, folder=None)
    except (OSError, TimeoutError):
        return None
    match = _RELEASE.search(outcome.stdout)
    return (int(match[1]), int(match[2])) if match and outcome.status == 0 else None


def _candidates(name: str) -> Iterator[tuple[str, str]]:
    for root in _package_roots("nvidia"):
        for path in (*sorted(root.glob(f"cu*/bin/{name}"), reverse=True), *sorted(root.glob(f"*/bin/{name}"))):
            yield from _if_executable(path, "package")
    if path := shutil.which(name):
        yield path, "PATH"
    for root in _package_roots("triton"):
        for spelled in _TRITON_NAMES.get(name, (name,)):
            yield from _if_executable(root / "backends" / "nvidia" / "bin" / spelled, "triton")
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            yield from _if_executable(Path(home) / "bin" / name, variable)


def _package_roots(package: str) -> Iterator[Path]:
    # find_spec does not import the package; the fallback serves a broken or half-removed installation.
    with contextlib.suppress(ImportError, ValueError, AttributeError):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            yield from (Path(location) for location in spec.submodule_search_locations)
            return
    yield from (root for entry in sys.path if entry and (root := Path(entry) / package).is_dir())


def _if_executable(path: Path, origin: str) -> Iterator[tuple[str, str]]:
    if path.is_file() and os.access(path, os.X_OK):
        yield str(path), origin


def run(command: Sequence[str], *, timeout: float, folder: Path | None, limit: int = _MESSAGES) -> Outcome:
    """Runs `command`; output goes through files, `limit` bytes of each are read back: a flood cannot fill memory.

    Raises TimeoutError after `timeout` seconds; the tool and all it started are killed then. Raises OSError if it
    cannot start.
    """
    with tempfile.TemporaryFile(dir=folder) as out, tempfile.TemporaryFile(dir=folder) as err:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, start_new_session=True
        )
        try:
            status = process.wait(timeout)
        except BaseException as error:
            _kill_group(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeoutError(f"{command[0]} did not end within {timeout:g} s") from None
            raise
        texts: list[str] = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read(limit).decode("utf-8", "replace"))
    return Outcome(status, texts[0], texts[1])


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Ends the tool and its children: start_new_session made it the leader of a group of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
