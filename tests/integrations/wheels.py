"""Triton wheels for the tests: unpacked under `$PTXFENCE_TOOLS/triton-VERSION`, fetched once with pip if missing.

Without the variable they are kept in the user's cache folder. A test that cannot get its wheel is skipped with the
reason.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

DAILY = ("3.7.0", "3.9.0")
"""The last release without and the newest with Triton's own fences for TMA stores."""
RELEASES = ("3.6.0", "3.7.0", "3.7.1", "3.8.0", "3.9.0")


def versions(daily: tuple[str, ...] = DAILY) -> list[object]:
    """All releases, as parameters; those that the daily suite leaves out are marked."""
    return [pytest.param(v, marks=() if v in daily else pytest.mark.wheels, id=v) for v in RELEASES]


def triton_wheel(version: str) -> Path:
    """The folder to put on PYTHONPATH. Skips the test if the wheel cannot be had."""
    folder = _tools() / f"triton-{version}"
    if (folder / "triton" / "__init__.py").is_file():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one download, however many test processes
        if not (folder / "triton" / "__init__.py").is_file():
            _install(version, folder)
    return folder


def _tools() -> Path:
    chosen = os.environ.get("PTXFENCE_TOOLS")
    return Path(chosen) if chosen else Path.home() / ".cache" / "ptxfence-tools"


def _install(version: str, folder: Path) -> None:
    part = folder.with_suffix(".part")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(part), f"triton=={version}"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"triton {version}: {error}")
    if result.returncode != 0:
        pytest.skip(f"triton {version} cannot be installed: {' '.join(result.stderr.split())[-200:]}")
    part.rename(folder)
