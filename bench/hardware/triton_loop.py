"""ptxfence in the loop, shown on a GPU: Triton programs, torch.compile, races, recordings, cuda-python recipes.

    python3 bench/hardware/triton_loop.py [--quick] [--only STEP ...]

Needs an sm_90 GPU, PyTorch, Triton 3.6 to 3.7.0 and cuda-python; ptxfence and lark must be importable. Prints a table
and exits with 1 if a line is not as expected. Takes about five minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VICTIM = [sys.executable, str(HERE / "triton_victim.py")]
RECIPES = ("cuda-core", "driver", "load", "nvrtc", "cupy", "numba")
DEMOS = ("transpose_bulk_store", "wgmma_staged_a", "war_bulk_load", "global_roundtrip")
LIMIT = 240.0


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    what: str
    result: str
    good: bool


class Loop:
    """The steps, in a scratch folder of their own."""

    def __init__(self, folder: Path, quick: bool) -> None:
        self.folder = folder
        self.size = ["--tiles", "2048", "--runs", "2"] if quick else []
        self.runs = "3" if quick else "10"
        self.env = {**os.environ, "TRITON_CACHE_DIR": str(folder / "triton"), "PTXFENCE": ""}
        self.env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self.env["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")

    def run(self, command: list[str], **changes: str) -> subprocess.CompletedProcess[str]:
        env = {**self.env, **changes}
        try:
            return subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, -1, "", f"not done within {LIMIT:g} s")

    def watched(self, command: list[str], *options: str, **changes: str) -> subprocess.CompletedProcess[str]:
        return self.run([sys.executable, "-m", "ptxfence", "run", *options, "--", *command], **changes)

    def triton(self) -> Iterator[Line]:
        """A program whose kernel lacks a fence fails its own check, and passes unchanged under `run --fix`."""
        program = [*VICTIM, *self.size]
        report = self.folder / "report.json"
        for what, options, status in (
            ("Triton program alone", None, 1),
            ("under run --fix", ("--fix", "--report", str(report)), 0),
            ("under run --fix, warm cache", ("--fix", "--report", str(report)), 0),
            ("alone again", None, 1),
            ("under run --check", ("--check",), 1),
        ):
            result = self.run(program) if options is None else self.watched(program, *options)
            note = ""
            if options and "--report" in options and report.is_file():
                summary = json.loads(report.read_text())["summary"]
                note = f", {summary['patched']} patched, {summary['cached']} cached, {summary['seconds']:.2f} s of ours"
            yield Line(what, _counted(result) + note, _as_wanted(result, status))
        result = self.watched(program, "--error")
        refused = "HazardError" in result.stderr and "triton_victim.py:" in result.stderr
        yield Line("under run --error", "refused, naming the Python line" if refused else _last(result), refused)

    def stand_in(self) -> Iterator[Line]:
        """The same through a ptxas of ours."""
        script = "from ptxfence.integrations.toolkit import write_stand_in as w; from pathlib import Path; import sys; "
        path = self.folder / "ptxas"
        real = self.run([sys.executable, "-c", "import triton; print(triton.knobs.nvidia.ptxas.path)"]).stdout.strip()
        self.run([sys.executable, "-c", script + f"w(Path({str(path)!r}), Path({real!r}))"])
        for mode, status in (("check", 1), ("fix", 0)):
            # The wrapper sets the mode for the stand-in alone, so that no hook is at work.
            wrapper = self.folder / f"ptxas-{mode}"
            wrapper.write_text(f'#!/bin/sh\nPTXFENCE={mode} exec {path} "$@"\n')
            wrapper.chmod(0o755)
            result = self.run([*VICTIM, *self.size], TRITON_PTXAS_PATH=str(wrapper))
            yield Line(f"stand-in for ptxas, {mode}", _counted(result), _as_wanted(result, status))

    def torch(self) -> Iterator[Line]:
        """Inductor's kernels are seen, in its worker processes too, and compute the same."""
        report = self.folder / "torch.json"
        for mode in ("--check", "--fix"):
            result = self.watched([sys.executable, str(HERE / "torch_compile.py")], mode, "--report", str(report))
            summary = json.loads(report.read_text())["summary"] if report.is_file() else {"kernels": 0}
            text = f"{_last(result)}; {summary['kernels']} kernels, {summary.get('processes')} processes, " + (
                f"{summary.get('errors')} errors, {summary.get('patched')} patched, {summary.get('failures')} failed"
            )
            yield Line(f"torch.compile under run {mode}", text, result.returncode == 0 and summary["kernels"] > 0)

    def race(self) -> Iterator[Line]:
        """Wrong words before, none after, whatever way the kernel takes to the GPU."""
        for demo in DEMOS:
            kernel = ROOT / "corpus" / "ptx" / "nvcc-13.0" / f"{demo}.nofence.sm_90.ptx"
            for route in ("cubin", "ptx", "cuda-core"):
                yield self._race(demo, kernel, HERE / "race" / f"{demo}.toml", route)

    def _race(self, name: str, kernel: Path, launch: Path, route: str) -> Line:
        words = ["race", str(kernel), "--launch", str(launch), "--route", route, "--runs", self.runs]
        result = self.run([sys.executable, "-m", "ptxfence", *words, "--format", "json"])
        if not result.stdout:
            return Line(f"race {name} ({route})", _last(result), False)
        original, patched = json.loads(result.stdout)["tracks"]
        wrong = [run["wrong"] for run in original["runs"]]
        text = (
            f"original {min(wrong)} to {max(wrong)} of {original['words']} words wrong in {len(wrong)} runs, "
            f"patched {sum(run['wrong'] for run in patched['runs'])}; "
            f"{original['milliseconds']:.3f} ms and {patched['milliseconds']:.3f} ms"
        )
        return Line(f"race {name} ({route})", text, original["wrong_runs"] > 0 and not patched["wrong_runs"])

    def record(self) -> Iterator[Line]:
        """A launch recorded from the Triton program, raced."""
        folder = self.folder / "record"
        result = self.watched([*VICTIM, "--tiles", "4096", "--runs", "1"], "--check", "--record", str(folder))
        launches = sorted(folder.glob("*/launch.toml"))
        if not launches:
            yield Line("recorded launch", _last(result), False)
        for launch in launches:
            yield self._race(launch.parent.name, launch.with_name("kernel.ptx"), launch, "cubin")

    def recipes(self) -> Iterator[Line]:
        """cuda.core, the driver, NVRTC, CuPy, numba-cuda, each in a process of its own."""
        for name in RECIPES:
            result = self.run([sys.executable, str(HERE / "recipes.py"), name])
            text = _last(result).removeprefix(f"{name}: ")
            yield Line(f"recipe {name}", text, text == "right" or text.startswith("not here"))

    def launches(self) -> Iterator[Line]:
        """What a launch of a compiled kernel costs with and without us."""
        times = {"none": math.inf, "check": math.inf, "fix": math.inf}
        command = [sys.executable, str(HERE / "launch_cost.py")]
        for mode in list(times) * 3:  # in turn, the least of each: processes differ by more than we add
            result = self.run(command) if mode == "none" else self.watched(command, f"--{mode}", "--quiet")
            found = re.search(r"([\d.]+) us", result.stdout)
            times[mode] = min(times[mode], float(found[1]) if found else math.inf)
        text = ", ".join(f"{mode} {microseconds:.2f} us" for mode, microseconds in times.items())
        yield Line("host time of a launch", text, times["fix"] - times["none"] < 1.5)


def _counted(result: subprocess.CompletedProcess[str]) -> str:
    """The program's own count of wrong words, or why there is none."""
    return next((line for line in result.stdout.splitlines() if "words wrong" in line), _last(result))


def _as_wanted(result: subprocess.CompletedProcess[str], status: int) -> bool:
    return result.returncode == status and "words wrong" in result.stdout


def _last(result: subprocess.CompletedProcess[str]) -> str:
    lines = (result.stdout.strip() or result.stderr.strip()).splitlines()
    return lines[-1][:160] if lines else f"status {result.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller runs")
    parser.add_argument("--only", nargs="+", metavar="STEP", help="triton stand_in torch race record recipes launches")
    arguments = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(prefix="triton-loop-") as name:
        loop = Loop(Path(name), arguments.quick)
        steps: dict[str, Callable[[], Iterator[Line]]] = {
            "triton": loop.triton, "stand_in": loop.stand_in, "race": loop.race, "record": loop.record,
            "recipes": loop.recipes, "launches": loop.launches, "torch": loop.torch,
        }  # fmt: skip
        print("| what | result | as expected |\n| --- | --- | --- |")
        for step in arguments.only or steps:
            started = time.monotonic()
            for line in steps[step]():
                print(f"| {line.what} | {line.result.replace('|', '/')} | {'yes' if line.good else 'NO'} |", flush=True)
                good &= line.good
            print(f"{step}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
