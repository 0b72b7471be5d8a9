"""Starts a program so that every kernel it compiles is checked or patched, and sums up what happened in it.

Python programs are reached through `PYTHONPATH` (startup/sitecustomize.py), native ones through a `ptxas` and, where
there is a CUDA toolkit, an `nvcc` of ours first on `PATH`; both pass on to child processes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from ptxfence.errors import InputError
from ptxfence.integrations import journal
from ptxfence.integrations.outcome import MODE_VARIABLE, SETTINGS_VARIABLE, Mode, cache_key
from ptxfence.integrations.toolkit import find_toolkit, module_roots, shadow, write_stand_in
from ptxfence.integrations.triton import RECORD_VARIABLE, TAG_VARIABLE

ROOTS_VARIABLE = "PTXFENCE_ROOTS"
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_STARTUP = Path(__file__).resolve().parent / "startup"


@dataclass(frozen=True, slots=True)
class Watched:
    """A finished program: its exit status as a shell would give it, wall time in seconds, what was seen."""

    status: int
    seconds: float
    entries: tuple[journal.Entry, ...]


def run_watched(
    command: Sequence[str], mode: Mode, *, settings: Path | None = None, record: Path | None = None
) -> Watched:
    """Runs `command`; its input, output and signals are its own. `record` is a folder for recorded launches.

    Raises InputError if the program cannot be started, ConfigError for a settings file that makes no sense.
    """
    with tempfile.TemporaryDirectory(prefix="ptxfence-run-") as name:
        folder = Path(name)
        (folder / "journal").mkdir()
        environment = _environment(os.environ, folder, mode, settings, record)
        started = time.monotonic()
        status = _run(command, environment)
        seconds = time.monotonic() - started
        return Watched(status, seconds, journal.read(folder / "journal"))


def _environment(
    base: Mapping[str, str], folder: Path, mode: Mode, settings: Path | None, record: Path | None
) -> dict[str, str]:
    environment = dict(base)
    environment[MODE_VARIABLE] = mode
    environment[journal.VARIABLE] = str(folder / "journal")
    environment[ROOTS_VARIABLE] = os.pathsep.join(f"{key}={value}" for key, value in module_roots().items())
    environment["PYTHONPATH"] = _first(str(_STARTUP), base.get("PYTHONPATH"))
    if settings is not None:
        environment[SETTINGS_VARIABLE] = str(settings.resolve())
    if record is not None:
        environment[RECORD_VARIABLE] = str(record.resolve())
    key = cache_key(mode, environment)
    if mode is Mode.FIX:
        # Here too, not only once Triton is there: torch reads it when it is imported.
        environment[TAG_VARIABLE] = base.get(TAG_VARIABLE, "") + key
    _tools(environment, folder)
    return environment


def _tools(environment: dict[str, str], folder: Path) -> None:
    """Puts our ptxas, and nvcc if there is one, first on PATH."""
    stand_ins = folder / "bin"
    stand_ins.mkdir()
    # The ptxas that the program would have found; nothing found: the newest anywhere.
    write_stand_in(stand_ins / "ptxas", _on_path("ptxas"))
    toolkit = find_toolkit()
    if toolkit is not None:
        with contextlib.suppress(OSError, InputError):
            shadow(toolkit, folder / "toolkit")
            # A script, not a link: nvcc looks for its toolkit where it was started.
            nvcc = stand_ins / "nvcc"
            nvcc.write_text(f'#!/bin/sh\nexec {folder}/toolkit/bin/nvcc "$@"\n')
            nvcc.chmod(0o755)
            for name in ("CUDA_HOME", "CUDA_PATH"):
                if name in environment and Path(environment[name]).resolve() == toolkit:
                    environment[name] = str(folder / "toolkit")
    environment["PATH"] = _first(str(stand_ins), environment.get("PATH"))


def _on_path(name: str) -> Path | None:
    import shutil

    found = shutil.which(name)
    return None if found is None else Path(found)


def _first(entry: str, rest: str | None) -> str:
    return entry if not rest else f"{entry}{os.pathsep}{rest}"


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    try:
        process = subprocess.Popen(command, env=environment)
    except OSError as error:
        raise InputError(f"{command[0]}: {error.strerror}") from None
    with _passing_on(process):
        while True:
            with contextlib.suppress(KeyboardInterrupt):  # the terminal sent it to the program as well
                code = process.wait()
                return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _passing_on(process: subprocess.Popen[bytes]) -> Generator[None]:
    """Sends the signals that we get to the program."""

    def send(number: int, _: FrameType | None) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, send) for number in _PASSED_ON}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
