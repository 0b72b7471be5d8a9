"""Generated kernels by the hundred thousand: the oracle against check, recheck and fix.

    python bench/trust/run.py --count 100000 --jobs 2 --keep findings/ --page

Prints a table; `--keep` writes each kind of disagreement, shrunk, as a .ptx file; `--page` puts the table into
docs/trust.md. A seed names a kernel: `--start` and `--count` repeat a run.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import ptxfence  # noqa: E402
from ptxfence.analysis.report import Confidence  # noqa: E402
from tests.oracle.generate import generate  # noqa: E402
from tests.oracle.kernels import Kernel  # noqa: E402
from tests.oracle.properties import (  # noqa: E402
    Disagreement,
    certainty,
    fixed,
    monotone,
    observe,
    rechecked,
    soundness,
    unchanged,
)
from tests.oracle.shrink import shrink, signature  # noqa: E402

BEGIN, END = "<!-- figures: written by bench/trust/run.py -->", "<!-- end of figures -->"
CHUNK = 50
EVERY_FIX, EVERY_VARIANT, EVERY_ASSEMBLY = 4, 8, 100  # one program in so many gets the dearer checks


@dataclass(slots=True)
class Tally:
    """What a chunk of seeds gave."""

    counts: Counter[str] = field(default_factory=Counter[str])
    failures: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])

    def add(self, other: Tally) -> None:
        self.counts.update(other.counts)
        self.failures += other.failures


def examine(kernel: Kernel, seed: int, tally: Tally | None = None) -> list[Disagreement]:
    """All disagreements of one kernel."""
    seen = observe(kernel, seed)
    report = ptxfence.check(kernel.text(32))
    found = [*soundness(seen, report)]
    for confidence in (Confidence.CERTAIN, Confidence.LIKELY):
        found += certainty(kernel, seed, seen, report, confidence)
    found += rechecked(kernel, report)
    if seed % EVERY_FIX == 0:
        found += fixed(kernel, seed)
    if seed % EVERY_VARIANT == 0:
        found += unchanged(kernel)
        found += monotone(kernel, random.Random(seed).randrange(len(kernel.body)))
    if tally is not None:
        tally.counts[f"verdict {report.verdict.value}"] += 1
        tally.counts["programs with a hazard (oracle)"] += any(h.rule for h in seen.hazards)
        tally.counts["programs that block for ever"] += bool(seen.deadlocks)
        tally.counts["schedules run"] += seen.schedules
        for finding in report.findings:
            if finding.rule.startswith("PF1") and finding.second is not None:
                tally.counts[f"findings {finding.confidence.value}"] += 1
    return found


def chunk(start: int, count: int) -> Tally:
    tally = Tally()
    for seed in range(start, start + count):
        kernel = generate(seed)
        try:
            found = examine(kernel, seed, tally)
        except Exception as error:  # a crash of the tool is a finding too
            found = [Disagreement("crash", f"{type(error).__name__}: {error}")]
        tally.counts["programs"] += 1
        if seed % EVERY_ASSEMBLY == 0:
            tally.counts["assembled with ptxas"] += 1
            if not _assembles(kernel):
                found.append(Disagreement("assembly", "ptxas refuses the kernel"))
        for one in found:
            tally.counts[f"disagreement {one.what}"] += 1
            tally.failures.append((seed, one.what, one.text))
    return tally


def _assembles(kernel: Kernel) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.ptx"
        path.write_text(kernel.text(32))
        command = ["ptxas", "-arch=sm_90a", "-O0", str(path), "-o", str(Path(folder) / "k.cubin")]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def keep(folder: Path, failures: Iterable[tuple[int, str, str]]) -> None:
    """The first kernel of each kind of disagreement, shrunk."""
    folder.mkdir(parents=True, exist_ok=True)
    done: set[str] = set()
    failures = list(failures)
    for seed, what, _ in failures:
        if what in done or what in ("crash", "assembly"):
            continue
        done.add(what)

        kernel = generate(seed)
        wanted = {signature(kernel, what, text) for s, w, text in failures if (s, w) == (seed, what)}

        def same(kernel: Kernel, seed: int = seed, wanted: set[tuple[str, ...]] = wanted) -> bool:
            return any(signature(kernel, one.what, one.text) in wanted for one in examine(kernel, seed))

        small = shrink(kernel, same)
        texts = [one.text for one in examine(small, seed) if one.what == what]
        (folder / f"{what}-{seed}.ptx").write_text(small.text(32) + "".join(f"// {text}\n" for text in texts))


def table(tally: Tally, start: int, seconds: float) -> str:
    last = start + tally.counts["programs"] - 1
    tally.counts.setdefault("disagreement soundness", 0)
    lines = [f"Seeds {start} to {last}, {seconds:.0f} s.", "", "| what | count |", "|---|---|"]
    lines += [f"| {name} | {count} |" for name, count in sorted(tally.counts.items())]
    for level in ("certain", "likely"):
        total = tally.counts[f"findings {level}"]
        if total:
            wrong = tally.counts[f"disagreement {level}"]
            lines.append(f"| precision of `{level}` | {100 * (1 - wrong / total):.2f} % |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--page", action="store_true", help="write the table into docs/trust.md")
    options = parser.parse_args()
    if shutil.which("ptxas") is None:
        parser.error("ptxas is not on PATH")
    begin = time.monotonic()
    total = Tally()
    starts = range(options.start, options.start + options.count, CHUNK)
    sizes = [min(CHUNK, options.start + options.count - at) for at in starts]
    with ProcessPoolExecutor(options.jobs) as pool:
        for tally in pool.map(chunk, starts, sizes):
            total.add(tally)
    text = table(total, options.start, time.monotonic() - begin)
    print(text)
    for seed, what, message in total.failures:
        print(f"{seed}: {what}: {message}")
    if options.keep is not None:
        keep(options.keep, total.failures)
    if options.page:
        page = ROOT / "docs" / "trust.md"
        old = page.read_text()
        page.write_text(f"{old[: old.index(BEGIN)]}{BEGIN}\n{text}\n\n{old[old.index(END) :]}")
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
