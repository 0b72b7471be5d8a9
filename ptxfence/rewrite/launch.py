"""Races a kernel against its patched form: each runs in a process of its own, which is ended if it hangs.

The patched form goes first; its first outputs are what the original is compared with where there is no reference.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ptxfence.errors import AssemblyError, DeviceError
from ptxfence.rewrite.launch_spec import Launch

ROUTES = ("cubin", "ptx", "cuda-core")
"""How a kernel gets to the GPU: assembled by ptxas, through the driver's own assembler, through cuda.core."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first word that is wrong: its index, what it is and what it should be."""

    output: str
    word: int
    found: int
    expected: int


@dataclass(frozen=True, slots=True)
class Run:
    """One launch. `wrong` counts 4-byte words of the outputs; `milliseconds` is the GPU's time."""

    wrong: int
    milliseconds: float
    noisy: bool
    first: Difference | None = None


@dataclass(frozen=True, slots=True)
class Track:
    """All runs of one variant. `words` is how many were compared in each; `against` what they were compared with."""

    variant: str
    words: int
    against: str
    runs: tuple[Run, ...]

    @property
    def wrong_runs(self) -> int:
        return sum(run.wrong > 0 for run in self.runs)

    @property
    def milliseconds(self) -> float:
        """Median over the runs without noise, or over all if each had noise."""
        times = sorted(run.milliseconds for run in self.runs if not run.noisy) or sorted(
            run.milliseconds for run in self.runs
        )
        return times[len(times) // 2]


def race(original: str, patched: str, launch: Launch, *, device: int = 0, route: str = "cubin") -> tuple[Track, Track]:
    """Runs both texts and compares. Returns the tracks of the original and of the patched kernel.

    Raises DeviceError: no GPU of compute capability 9.0 or newer, a launch that fails, or one that has not ended
    after `launch.timeout` seconds. Raises AssemblyError if a text cannot be assembled.
    """
    with tempfile.TemporaryDirectory(prefix="ptxfence-race-") as name:
        folder = Path(name)
        tracks = {
            variant: _run(variant, text, launch, folder, device, route)
            for variant, text in (("patched", patched), ("original", original))
        }
    return tracks["original"], tracks["patched"]


def _run(variant: str, text: str, launch: Launch, folder: Path, device: int, route: str) -> Track:
    code = folder / f"{variant}.code"
    code.write_bytes(_code(text, route))
    job = {
        "variant": variant,
        "code": str(code),
        "route": route,
        "device": device,
        "launch": asdict(launch),
        "folder": str(folder),
    }
    answer = folder / f"{variant}.answer.json"
    environment = {**os.environ, "PTXFENCE": ""}  # what is raced must not be patched on the way
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (_root(), environment.get("PYTHONPATH", ""))))
    command = [sys.executable, "-m", "ptxfence.rewrite.launch_device", str(answer)]
    try:
        process = subprocess.run(
            command, input=json.dumps(job), env=environment, timeout=launch.timeout, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise DeviceError(f"the {variant} kernel did not end within {launch.timeout:g} s and was stopped") from None
    if not answer.is_file():
        raise DeviceError(_last_line(process.stderr) or f"the {variant} kernel's process ended with no result")
    data = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in data:
        raise DeviceError(f"{variant}: {data['error']}" if data["ran"] else data["error"])
    return Track(variant, data["words"], data["against"], tuple(_read_run(run) for run in data["runs"]))


def _read_run(data: dict[str, Any]) -> Run:
    first = data.pop("first")
    return Run(**data, first=Difference(**first) if first else None)


def _code(text: str, route: str) -> bytes:
    if route != "cubin":
        return text.encode("utf-8", "surrogateescape")
    from ptxfence.rewrite.assemble import assemble

    return assemble(text)


def default_route() -> str:
    """`cubin` where a ptxas is found, else `ptx`."""
    from ptxfence.rewrite.assemble import available

    try:
        return "cubin" if available() else "ptx"
    except AssemblyError:
        return "ptx"


def _root() -> str:
    return str(Path(__file__).resolve().parent.parent.parent)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
