"""How check grows: real kernels made larger, time per stage, growth exponent and peak memory.

    python bench/growth.py [--most N] [--memory] [KERNEL.ptx ...]       default: four kernels of corpus/ptx

Every innermost loop of a kernel is unrolled, so that ring stages, mbarrier phases, warp roles and swizzles of the real
kernel stand there many times, with registers of their own. Prints one line a size: instructions, CPU seconds of each
stage, and the exponent of the time over the last tenfold size. `--memory` prints the peak of a process of its own that
checks a file of about 1 MB, in multiples of the file. Exit status 1 where ten times the instructions take more than 12
times as long, or memory exceeds 60 times the file.
"""

from __future__ import annotations

import argparse
import gc
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.unroll import unrolled
from ptxfence.analysis import check
from ptxfence.analysis.check import analyse
from ptxfence.grammar import parse

CORPUS = Path(__file__).resolve().parent.parent / "corpus" / "ptx"
KERNELS = (
    "triton-3.9.0/attention.sm_90.ptx",
    "triton-3.9.0/ws_cast_gemm.sm_100.ptx",
    "triton-3.9.0/pointer_gemm.sm_90.ptx",
    "triton-3.9.0/tma_attention.sm_90.ptx",
)
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 200_000)
TEN_TIMES, MEMORY = 12.0, 60.0


class Stages:
    """CPU seconds by stage: what the driver of the analysis calls, with what it calls lazily counted where it runs."""

    NAMES = ("Cfg", "Values", "Events", "Conflicts", "Program", "Handoffs", "Flow", "Findings", "Witness", "advise")

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._stack: list[float] = []

    def timed(self, name: str, action: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **more: Any) -> Any:
            started = time.process_time()
            self._stack.append(0.0)
            try:
                return action(*args, **more)
            finally:
                spent = time.process_time() - started
                inner = self._stack.pop()
                self.seconds[name] = self.seconds.get(name, 0.0) + spent - inner
                if self._stack:
                    self._stack[-1] += spent

        return run

    def watch(self) -> None:
        """Wraps the stages where the driver finds them; methods that do the work later are wrapped as well."""
        for name in self.NAMES:
            found = vars(check).get(name)
            if found is None:
                continue
            if isinstance(found, type):
                found.__init__ = self.timed(name.lower(), found.__init__)
            else:
                setattr(check, name, self.timed(name, found))
        check.Flow.hazards = self.timed("flow", check.Flow.hazards)
        check.Findings.of = self.timed("findings", check.Findings.of)
        rules = (check.tensormaps, "unfenced"), (check.globalmem, "unfenced")
        for module, name in (*rules, (check.inflight, "unobserved"), (check.published, "unpublished")):
            setattr(module, name, self.timed("rules", getattr(module, name)))


def measured(text: str, stages: Stages) -> tuple[int, float, str]:
    """Instructions, seconds and verdict of one check."""
    stages.seconds.clear()
    gc.collect()
    started = time.process_time()
    file = stages.timed("split", parse)(text)
    count = stages.timed("split", lambda: sum(len(f.instructions) for m in file.modules for f in m.functions))()
    report = stages.timed("other", analyse)(file)
    return count, time.process_time() - started, report.kernels[0].verdict.value


def grow(path: Path, most: int, stages: Stages) -> bool:
    """Prints the table of one kernel; whether it grew as it should."""
    text = path.read_text()
    own, body = unrolled(text, 1).sizes
    print(f"\n{path.parent.name}/{path.name}: {own} instructions, {body} of them in loops that are unrolled")
    found: list[tuple[int, float]] = []
    fine = True
    for size in [s for s in SIZES if own < s <= most]:
        count, spent, verdict = measured(unrolled(text, max(1, (size - own + body) // body)).text, stages)
        found.append((count, spent))
        note = ""
        smaller = next(((n, s) for n, s in reversed(found) if count >= 9 * n), None)
        if smaller is not None:
            exponent = math.log(spent / smaller[1]) / math.log(count / smaller[0])
            note = f"  exponent {exponent:.2f} ({10**exponent:.1f} x for 10 x)"
            fine = fine and 10**exponent <= TEN_TIMES
        parts = "  ".join(f"{name} {s:.2f}" for name, s in stages.seconds.items() if s >= 0.005)
        print(f"{count:8} {spent:8.2f} s  {verdict:9} {parts}{note}", flush=True)
    return fine


def peak(path: Path) -> tuple[float, float]:
    """Peak memory of a process that checks a file, and of one that checks an empty kernel, in multiples of the file."""
    program = "import sys, resource, ptxfence\nfor p in sys.argv[1:]: ptxfence.check(open(p).read())\n"
    program += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    size = path.stat().st_size
    small = path.with_suffix(".small")
    small.write_text(".version 8.0\n.target sm_90a\n.address_size 64\n.entry k()\n{\nret;\n}\n")
    found: list[float] = []
    for file in (path, small):
        run = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=True)
        found.append(int(run.stdout) * 1024 / size)
    return found[0], found[1]


def memory(path: Path) -> bool:
    text = path.read_text()
    copies = 1
    while len(unrolled(text, copies).text) < 1_000_000:
        copies *= 2
    low, high = copies // 2, copies
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if len(unrolled(text, middle).text) >= 1_000_000 else (middle, high)
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.ptx"
        large.write_text(unrolled(text, high).text)
        whole, empty = peak(large)
        size = large.stat().st_size
    print(f"{path.parent.name}/{path.name}: {size / 1e6:.2f} MB, peak {whole:.0f} x the file, {empty:.0f} x without it")
    return whole - empty <= MEMORY


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("kernels", nargs="*", type=Path)
    options.add_argument("--most", type=int, default=SIZES[-1])
    options.add_argument("--memory", action="store_true")
    chosen = options.parse_args()
    kernels = chosen.kernels or [CORPUS / name for name in KERNELS]
    if chosen.memory:
        found = [memory(path) for path in kernels]
        return int(not all(found))
    stages = Stages()
    stages.watch()
    fine = [grow(path, chosen.most, stages) for path in kernels]
    return int(not all(fine))


if __name__ == "__main__":
    raise SystemExit(main())
